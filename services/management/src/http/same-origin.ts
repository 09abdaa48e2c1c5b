/**
 * Whether a browser vouches that the request comes from a page of this very host. `Sec-Fetch-Site` is the browser's
 * own word, and no page can set it; where it is missing, on plain http, `Origin` must name the host of the request.
 * @param host the request's own, with its port unless that is the scheme's default
 */
export function isSameOrigin(request: {
  secFetchSite: string | undefined;
  origin: string | undefined;
  host: string | undefined;
}): boolean {
  const { secFetchSite, origin, host } = request;
  if (secFetchSite !== undefined) return secFetchSite === 'same-origin';
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  // Behind a proxy that ends TLS the scheme is not known for sure, so only the hosts are compared, port included.
  const ownUrl = `${protocol}//${host}`;
  return URL.canParse(ownUrl) && new URL(ownUrl).host === originHost;
}
