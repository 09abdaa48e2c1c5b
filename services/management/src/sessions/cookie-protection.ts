/** Protection of the cookies of a response. */
export interface CookieProtection {
  /** `__Host-` binds a cookie to this host and to https: no other host of the domain can set or replace it. */
  prefix: '' | typeof HOST_PREFIX;
  /** Whether browsers return the cookie over https only. */
  isSecure: boolean;
}

const HOST_PREFIX = '__Host-';

/**
 * Returns the protection of a request's cookies. With a `PUBLIC_URL` of https it depends on no header; otherwise cookies
 * have no prefix, since browsers would reject it over http.
 * @param isHttpsRequest whether the request came over https, as reported by trusted proxies
 */
export function cookieProtection(publicUrl: string | undefined, isHttpsRequest: boolean): CookieProtection {
  if (publicUrl !== undefined && /^https:/i.test(publicUrl)) return { prefix: HOST_PREFIX, isSecure: true };
  return { prefix: '', isSecure: isHttpsRequest };
}

/**
 * Returns the attributes of a `Set-Cookie`. `Strict` unless a page of another site must lead to a request with the
 * cookie: only scripts of the console's own pages need the others; a link from elsewhere opens those pages without them.
 */
export function cookieAttributes(
  { isSecure }: CookieProtection,
  sameSite: 'Strict' | 'Lax' = 'Strict',
): string {
  return `Path=/; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`;
}

/**
 * Returns the values of a cookie: first with the prefix, then without, as releases before 0.2.0 set it and as it is
 * without an https `PUBLIC_URL`.
 * @param header `Cookie` header of the request; @param name without the prefix
 */
export function cookieValues(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  return [HOST_PREFIX + name, name].flatMap((fullName) => {
    const pair = pairs.find((text) => text.startsWith(`${fullName}=`) && text.length > fullName.length + 1);
    return pair === undefined ? [] : [pair.slice(fullName.length + 1)];
  });
}

/** Returns the `Set-Cookie` that removes a cookie from the browser; with a prefix, also the one without it. */
export function removedCookies(name: string, protection: CookieProtection): string[] {
  const names = protection.prefix === '' ? [name] : [protection.prefix + name, name];
  return names.map((fullName) => `${fullName}=; Max-Age=0; ${cookieAttributes(protection)}`);
}

/** Returns the `Set-Cookie` that removes the cookie without the prefix, if the new one has it. */
export function replacedCookies(name: string, protection: CookieProtection): string[] {
  return removedCookies(name, protection).slice(1);
}
