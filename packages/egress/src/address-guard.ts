import { inAnyRange, parseAddress, parseRange } from './cidr.ts';
import { isLocalhostName, literalAddress, parseEndpointUrl } from './endpoint-url.ts';
import { forbiddenIpv4, forbiddenIpv6 } from './forbidden-ranges.ts';

export interface AddressGuard {
  /** Whether a request may be sent to this address. Text that is not an address is not allowed. */
  allows(ip: string): boolean;
  /**
   * Judges a subscription's URL up front, without DNS: null, or a phrase that completes "client_url …". A name is
   * judged by the address it resolves to, when it is dialled.
   */
  urlProblem(url: string): string | null;
}

/**
 * The rule of which addresses may be reached: the public ones, and those in `allowCidrs` (as parseCidrs returns them).
 * An IPv4 entry opens IPv4 addresses only, never an IPv6 form that embeds one.
 * @throws Error naming the entry of `allowCidrs` that is not a range.
 */
export function createAddressGuard(allowCidrs: readonly string[]): AddressGuard {
  const opened = allowCidrs.map(parseRange);
  const forbidden = [...forbiddenIpv4, ...forbiddenIpv6].map(parseRange);

  function allows(ip: string): boolean {
    const address = parseAddress(ip);
    if (address === null) return false;
    return inAnyRange(address, opened) || !inAnyRange(address, forbidden);
  }

  function urlProblem(text: string): string | null {
    const url = parseEndpointUrl(text);
    if (typeof url === 'string') return url;
    const literal = literalAddress(url);
    if (literal !== null) {
      return allows(literal) ? null : `must not point to the address ${literal}, which is not allowed`;
    }
    if (isLocalhostName(url.hostname) && !allows('127.0.0.1') && !allows('::1'))
      return 'must not point to localhost';
    return null;
  }

  return { allows, urlProblem };
}
