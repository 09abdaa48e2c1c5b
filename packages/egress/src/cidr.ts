import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** A range of addresses of one family: the network and the number of leading bits that count. */
export type AddressRange = readonly [network: ipaddr.IPv4 | ipaddr.IPv6, prefixBits: number];

/**
 * Reads a comma-separated list of ranges (`10.0.0.0/8, ::1`), as in EGRESS_ALLOW_CIDRS. An address without a prefix
 * stands for itself alone; blank items are skipped. Returns the ranges as text, each with its prefix.
 * @throws Error naming the first item that is not a range.
 */
export function parseCidrs(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => {
      const [network, prefixBits] = parseRange(item);
      return `${network.toString()}/${prefixBits}`;
    });
}

/** @throws Error naming the text when it is neither an address nor a range in CIDR notation. */
export function parseRange(text: string): AddressRange {
  const [address = '', prefix, ...rest] = text.split('/');
  const network = parseAddress(address);
  const bitsMax = network?.kind() === 'ipv4' ? 32 : 128;
  const prefixBits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (network === null || rest.length > 0 || !(prefixBits <= bitsMax)) {
    throw new Error(`"${text}" is not an address range such as 10.0.0.0/8 or fd00::/8`);
  }
  return [network, prefixBits];
}

/**
 * Reads an address as it is dialled: four decimal parts, or IPv6 without a zone. Everything else is null, because
 * ipaddr.js alone would also take octal, hexadecimal and one-number forms that other code reads differently.
 */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  return isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text);
}

/** IPv4 ranges say nothing about IPv6 addresses that embed an IPv4 address, and the other way round. */
export function inAnyRange(address: ipaddr.IPv4 | ipaddr.IPv6, ranges: readonly AddressRange[]): boolean {
  return ranges.some(
    ([network, prefixBits]) => network.kind() === address.kind() && address.match(network, prefixBits),
  );
}
