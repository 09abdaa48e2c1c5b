import type { RequestOptions } from 'node:http';
import { isIP } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { LRUCache } from 'lru-cache';
import { AddressForbiddenError, PortForbiddenError } from './failure.ts';

/** Cached result of parsing and checking a URL. */
export type CachedEndpoint =
  | { url: URL; problem?: never; forbidden?: never }
  /** A phrase that completes "The URL …". */
  | { url?: never; problem: string; forbidden?: never }
  /** The guard rejects the port or the literal address in the URL. */
  | { url?: never; problem?: never; forbidden: Error };

/** Request options that Node derives from a URL. */
export type Destination = Pick<RequestOptions, 'protocol' | 'hostname' | 'port' | 'path'>;

interface TargetGuard {
  allows(address: string): boolean;
  allowsPort(port: number): boolean;
  parseUrl(text: string): URL | string;
}

/** Estimates the memory of a parsed URL: its text is in the cache key and in the parts of the URL. */
const estimateBytes = (_value: object, text: string) => 1_000 + 12 * text.length;

/** Caches parsed URLs, evicting the least recently used. */
export class EndpointCache {
  readonly #guard: TargetGuard;
  readonly #byText: LRUCache<string, CachedEndpoint>;
  readonly #destinations: LRUCache<string, Destination>;

  /** @param bytesMax total memory of the parsed URLs and of their request options */
  constructor(guard: TargetGuard, bytesMax: number) {
    this.#guard = guard;
    this.#byText = new LRUCache<string, CachedEndpoint>({
      maxSize: bytesMax / 2,
      sizeCalculation: estimateBytes,
    });
    this.#destinations = new LRUCache<string, Destination>({
      maxSize: bytesMax / 2,
      sizeCalculation: estimateBytes,
    });
  }

  get(text: string): CachedEndpoint {
    const cached = this.#byText.get(text);
    if (cached !== undefined) return cached;
    const endpoint = this.#parse(text);
    this.#byText.set(text, endpoint);
    return endpoint;
  }

  destinationOf(url: URL): Destination {
    const cached = this.#destinations.get(url.href);
    if (cached !== undefined) return cached;
    const { protocol, hostname, port, path } = urlToHttpOptions(url);
    const destination: Destination = { protocol, hostname, port, path };
    this.#destinations.set(url.href, destination);
    return destination;
  }

  #parse(text: string): CachedEndpoint {
    const url = this.#guard.parseUrl(text);
    if (typeof url === 'string') return { problem: url };
    const port = portOf(url);
    if (!this.#guard.allowsPort(port)) return { forbidden: new PortForbiddenError(port) };
    const literal = literalAddress(url);
    if (literal !== null && !this.#guard.allows(literal)) {
      return { forbidden: new AddressForbiddenError(literal) };
    }
    return { url };
  }
}

/**
 * Stricter than the WHATWG parser, which repairs its input: it accepts `http:host`, `http:\\host` and line breaks, in
 * which other parsers would see another host.
 */
const absoluteHttpUrl = /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}\\]*$/iu;

/** Returns the URL, or a phrase that completes "client_url …" when the text cannot be an endpoint's URL. */
export function parseEndpointUrl(text: string): URL | string {
  const url = absoluteHttpUrl.test(text) ? parseUrl(text) : null;
  if (url === null) return 'must be an absolute http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not carry credentials';
  // got interprets http://unix:/path as a Unix socket, which it then rejects.
  if (url.hostname === 'unix') return 'must not name a socket';
  return url;
}

/** Parses once: a preceding URL.canParse would double the cost on the hot path. */
function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/**
 * Returns the address that a URL contains literally, or null if its host is a name. The URL parser has already
 * normalized decimal, octal, hexadecimal, shortened and full-width forms and a trailing dot to four decimal parts.
 */
export function literalAddress(url: URL): string | null {
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return isIP(host) === 0 ? null : host;
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** Limits of DNS in bytes (RFC 1035, 2.3.4); the text of a name is shorter than its encoding by the two bytes at its ends. */
const LABEL_BYTES_MAX = 63;
const NAME_BYTES_MAX = 253;

/**
 * Returns a phrase that completes "client_url …" if no name server can have the name, else null. The URL parser has
 * converted other scripts to ASCII.
 */
export function hostNameProblem(hostname: string): string | null {
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  const labels = name.split('.');
  if (labels.includes('')) return 'must not have a host name with an empty part between dots';
  if (labels.some((label) => label.length > LABEL_BYTES_MAX))
    return `must not have a host name with a part of more than ${LABEL_BYTES_MAX} characters between dots`;
  return name.length > NAME_BYTES_MAX
    ? `must not have a host name of more than ${NAME_BYTES_MAX} characters`
    : null;
}

/** RFC 6761: `localhost` and all names below it are this machine, whatever DNS returns. */
export function isLocalhostName(hostname: string): boolean {
  return /(^|\.)localhost\.?$/i.test(hostname);
}
