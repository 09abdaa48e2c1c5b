import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import {
  hostNameProblem,
  isLocalhostName,
  literalAddress,
  parseEndpointUrl,
  portOf,
} from './endpoint-url.ts';

/**
 * Rules for the addresses and ports that requests may reach; the lists are as returned by parseCidrs and parsePorts.
 */
export interface EgressRules {
  /**
   * Ranges allowed in addition to public addresses. An IPv4 range allows IPv4 addresses only, never an IPv6 form that
   * embeds one.
   */
  allowCidrs: readonly string[];
  /**
   * Ranges that are always rejected, even if allowCidrs contains them. An IPv4 range also rejects the IPv6 forms that
   * embed its addresses.
   */
  denyCidrs?: readonly string[];
  /** Empty or undefined allows all ports. */
  ports?: readonly PortRange[];
  /** Whether URLs must be https; default false. */
  requireHttps?: boolean;
}

/** The settings of a service for the address guard, under the names that they have in its `settings.ts`. */
interface EgressSettings {
  egressAllowCidrs: string[];
  egressDenyCidrs: string[];
  egressPorts: PortRange[];
  egressRequireHttps: boolean;
}

export function egressRules(settings: EgressSettings): EgressRules {
  return {
    allowCidrs: settings.egressAllowCidrs,
    denyCidrs: settings.egressDenyCidrs,
    ports: settings.egressPorts,
    requireHttps: settings.egressRequireHttps,
  };
}

export interface AddressGuard {
  /** Whether a request may be sent to this address. Text that is not an address is not allowed. */
  allows(ip: string): boolean;
  allowsPort(port: number): boolean;
  /** Parses a URL; returns a phrase that completes "client_url …" if it is malformed or its scheme is not allowed. */
  parseUrl(url: string): URL | string;
  /**
   * Checks a subscription's URL in advance, without DNS: returns null, or a phrase that completes "client_url …". A
   * host name is checked when a connection is made, by the address to which it resolves.
   */
  urlProblem(url: string): string | null;
}

/**
 * Creates the guard: public addresses and allowed ranges may be reached, except for denied ranges.
 * @throws Error naming the entry that is not a range.
 */
export function createAddressGuard({
  allowCidrs,
  denyCidrs = [],
  ports = [],
  requireHttps = false,
}: EgressRules): AddressGuard {
  const allowedRanges = allowCidrs.map(parseRange);
  const deniedRanges = denyCidrs.map(parseRange);
  const specialRanges = [...forbiddenIpv4, ...forbiddenIpv6].map(parseRange);

  function allows(ip: string): boolean {
    const address = parseAddress(ip);
    if (address === null || isDenied(address)) return false;
    return inAnyRange(address, allowedRanges) || !inAnyRange(address, specialRanges);
  }

  function isDenied(address: Address): boolean {
    if (deniedRanges.length === 0) return false;
    return [address, ...embeddedIpv4(address)].some((one) => inAnyRange(one, deniedRanges));
  }

  function allowsPort(port: number): boolean {
    return ports.length === 0 || ports.some(({ first, last }) => first <= port && port <= last);
  }

  function parseUrl(text: string): URL | string {
    const url = parseEndpointUrl(text);
    return typeof url !== 'string' && requireHttps && url.protocol !== 'https:' ? HTTPS_REQUIRED : url;
  }

  function urlProblem(text: string): string | null {
    const url = parseUrl(text);
    if (typeof url === 'string') return url;
    const port = portOf(url);
    if (!allowsPort(port)) return `must not use the port ${port}, which is not allowed`;
    if (port === 0) return 'must not use the port 0, to which no connection can be made';
    const literal = literalAddress(url);
    if (literal !== null) {
      return allows(literal) ? null : `must not point to the address ${literal}, which is not allowed`;
    }
    const nameProblem = hostNameProblem(url.hostname);
    if (nameProblem !== null) return nameProblem;
    if (isLocalhostName(url.hostname) && !allows('127.0.0.1') && !allows('::1'))
      return 'must not point to localhost';
    return null;
  }

  return { allows, allowsPort, parseUrl, urlProblem };
}

const HTTPS_REQUIRED = 'must use https: this service sends to no other endpoints';

/**
 * Ranges that are rejected unless EGRESS_ALLOW_CIDRS contains them: those of the IANA special-purpose registries (RFC
 * 6890 and its successors) and the special addresses of cloud providers.
 */
export const forbiddenIpv4 = [
  '0.0.0.0/8', // "this network"; Linux connects 0.0.0.0 to loopback
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; a cloud's metadata service answers on 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's platform endpoint: a public address that only virtual machines can reach
  '169.254.0.0/16', // link-local; metadata services answer on 169.254.169.254
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments; a cloud's metadata service answers on 192.0.0.192
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // multicast tunnelling relays
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, with the broadcast address
] as const;

/**
 * Only 2000::/3 is routed on the internet, so the first five ranges cover all addresses that are private, local, mapped
 * or unassigned: ::, ::1, IPv4-mapped and -compatible, NAT64, discard, ULA, link-local, site-local, multicast, SRv6. A
 * form that embeds an IPv4 address is rejected regardless of that address, because the host that it reaches depends on
 * the network.
 */
export const forbiddenIpv6 = [
  '::/3',
  '4000::/2',
  '8000::/2',
  'c000::/3',
  'e000::/3',
  '2001::/23', // IETF protocol assignments: Teredo, benchmarking, ORCHID, multicast tunnelling
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // the former 6bone
  '3fff::/20', // documentation
] as const;

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An address range of one family: the network and the number of significant leading bits. */
type AddressRange = readonly [network: Address, prefixBits: number];

/** IPv6 forms that may be translated to an IPv4 address, and the byte where that address begins. */
const embeddingForms = [
  { range: parseRange('::/96'), firstByte: 12 }, // compatible
  { range: parseRange('::ffff:0:0/96'), firstByte: 12 }, // mapped
  { range: parseRange('::ffff:0:0:0/96'), firstByte: 12 }, // translated
  { range: parseRange('64:ff9b::/96'), firstByte: 12 }, // NAT64
  { range: parseRange('64:ff9b:1::/48'), firstByte: 12 }, // network-specific NAT64
  { range: parseRange('2002::/16'), firstByte: 2 }, // 6to4
] as const;

function embeddedIpv4(address: Address): ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  return embeddingForms
    .filter(({ range }) => inAnyRange(address, [range]))
    .map(({ firstByte }) => new ipaddr.IPv4(bytes.slice(firstByte, firstByte + 4)));
}

/**
 * Parses a comma-separated list of ranges (`10.0.0.0/8, ::1`), as in EGRESS_ALLOW_CIDRS. An address without a prefix is
 * a range of one address; blank items are skipped. Returns the ranges as text, each with its prefix.
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

/** A range of ports, both ends included. */
export interface PortRange {
  first: number;
  last: number;
}

/**
 * Parses a comma-separated list of ports and port ranges (`80, 443, 8000-8999`), as in EGRESS_PORTS; blank items are
 * skipped.
 * @throws Error naming the first item that is neither.
 */
export function parsePorts(text: string): PortRange[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => {
      const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(item) ?? [];
      const range = { first: Number(first), last: Number(last) };
      const isRange = range.first >= 1 && range.first <= range.last && range.last <= 65_535;
      if (!isRange) throw new Error(`"${item}" is not a port or a range of ports such as 443 or 8000-8999`);
      return range;
    });
}

/** @throws Error naming the text if it is neither an address nor a range in CIDR notation. */
function parseRange(text: string): AddressRange {
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
 * Parses an address as sockets accept it: four decimal parts, or IPv6 without a zone. Returns null for other text,
 * because ipaddr.js would also accept octal, hexadecimal and single-number forms that other parsers read differently.
 */
function parseAddress(text: string): Address | null {
  return isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text);
}

/**
 * Compares addresses of one family only: an IPv4 range does not cover IPv6 forms that embed its addresses, or vice
 * versa.
 */
function inAnyRange(address: Address, ranges: readonly AddressRange[]): boolean {
  return ranges.some(
    ([network, prefixBits]) => network.kind() === address.kind() && address.match(network, prefixBits),
  );
}
