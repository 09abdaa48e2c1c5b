import { randomBytes } from 'node:crypto';

/** A page and the policy that goes with it. */
export interface Page {
  html: string;
  contentSecurityPolicy: string;
}

/**
 * The console's page as an answer to `path`. It says where the console's root is, relative to the address that the
 * browser asked for: so it works below a proxy that strips a prefix, which only the browser knows.
 * @param path as the request has it, encoded, without its query
 */
export function consolePage(indexHtml: string, path: string): Page {
  const nonce = randomBytes(16).toString('base64url');
  const head = `<base href="${rootFrom(path)}">\n<meta name="csp-nonce" content="${nonce}">`;
  return {
    // A function: a `$` in the page's own text has no meaning.
    html: indexHtml.replace(/<head[^>]*>/i, (tag) => `${tag}\n${head}`),
    contentSecurityPolicy: policy(`'nonce-${nonce}'`),
  };
}

/** What leads from a path to the root: a step up for every slash but the first. Encoded ones part nothing. */
export function rootFrom(path: string): string {
  const slashes = path.split('/').length - 1;
  return slashes <= 1 ? './' : '../'.repeat(slashes - 1);
}

/** Instead of the page while there is none. */
export const UNBUILT_PAGE: Page = {
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runhook</title>
</head>
<body>
<h1>The console has not been built</h1>
<p>Run <code>npm run build</code> in the checkout and load this page again. The API works without it.</p>
</body>
</html>
`,
  contentSecurityPolicy: policy(),
};

/**
 * Nothing from another host, no inline script, no eval. The component library writes style elements into the page,
 * which the nonce lets in, and its components have style attributes.
 */
function policy(...styleSources: string[]): string {
  const directives = {
    'default-src': ["'none'"],
    'script-src': ["'self'"],
    'style-src': ["'self'", ...styleSources],
    'style-src-attr': ["'unsafe-inline'"],
    'img-src': ["'self'", 'data:'],
    'font-src': ["'self'"],
    'connect-src': ["'self'"],
    'manifest-src': ["'self'"],
    'base-uri': ["'self'"],
    'form-action': ["'self'"],
    'frame-ancestors': ["'none'"],
  };
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources.join(' ')}`)
    .join(';');
}
