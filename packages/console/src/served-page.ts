/**
 * Where the console is mounted, `/` or `/some/path/`. The server writes it into the page as `<base>`, relative to the
 * address that was asked for: below a proxy that strips a prefix, only the browser knows the whole path.
 */
export const basePath = new URL('.', document.baseURI).pathname;

/** An address of ours. @param path without a slash at its start: `api/v3/session`, `docs` */
export function ownUrl(path: string): string {
  return basePath + path;
}

/** What the page's policy lets styles in by; the server writes it into the page. Empty under a development server. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
}
