/**
 * Path at which the console is mounted, `/` or `/some/path/`. The server writes it into the page as `<base>`, relative to the
 * requested URL: behind a proxy that strips a prefix, only the browser knows the complete path.
 */
export const basePath = new URL('.', document.baseURI).pathname;

/** Returns the path of a resource of this server. @param path without a leading slash: `api/v3/session`, `docs` */
export function consoleUrl(path: string): string {
  return basePath + path;
}

/**
 * Returns the nonce for styles of the page's content security policy, which the server writes into the page. Empty under a
 * development server.
 */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
}
