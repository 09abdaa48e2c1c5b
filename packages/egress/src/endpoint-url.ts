import type { RequestOptions } from 'node:http';
import { isIP } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { LRUCache } from 'lru-cache';
import { AddressForbiddenError, PortForbiddenError } from './failure.ts';

/** A URL as it was parsed and judged once, so that not every request to it costs that again. */
export type KnownEndpoint =
  | { url: URL; problem?: never; forbidden?: never }
  /** A phrase that completes "The URL …". */
  | { url?: never; problem: string; forbidden?: never }
  /** What the guard does not allow of what the URL says without DNS. */
  | { url?: never; problem?: never; forbidden: Error };

/** What node needs to know of a URL. */
export type Destination = Pick<RequestOptions, 'protocol' | 'hostname' | 'port' | 'path'>;

interface TargetGuard {
  allows(address: string): boolean;
  allowsPort(port: number): boolean;
}

/** Approximate memory of a parsed URL: its text is in the cache's keys and in the parts of the URL. */
const bytesOf = (_value: object, text: string) => 1_000 + 12 * text.length;

/** Caches the URLs that were used last. */
export class KnownEndpoints {
  readonly #guard: TargetGuard;
  readonly #byText: LRUCache<string, KnownEndpoint>;
  readonly #destinations: LRUCache<string, Destination>;

  /** @param bytesMax memory of the parsed URLs, and of what Node needs of them */
  constructor(guard: TargetGuard, bytesMax: number) {
    this.#guard = guard;
    this.#byText = new LRUCache<string, KnownEndpoint>({ maxSize: bytesMax / 2, sizeCalculation: bytesOf });
    this.#destinations = new LRUCache<string, Destination>({
      maxSize: bytesMax / 2,
      sizeCalculation: bytesOf,
    });
  }

  of(text: string): KnownEndpoint {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const endpoint = this.#judge(text);
    this.#byText.set(text, endpoint);
    return endpoint;
  }

  destinationOf(url: URL): Destination {
    const known = this.#destinations.get(url.href);
    if (known !== undefined) return known;
    const { protocol, hostname, port, path } = urlToHttpOptions(url);
    const destination: Destination = { protocol, hostname, port, path };
    this.#destinations.set(url.href, destination);
    return destination;
  }

  #judge(text: string): KnownEndpoint {
    const url = parseEndpointUrl(text);
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
 * Stricter than the WHATWG parser, which repairs what it reads: it takes `http:host`, `http:\\host` and line breaks,
 * and other readers of the same text would then see another host.
 */
const absoluteHttpUrl = /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}\\]*$/iu;

/** Returns the URL, or a phrase that completes "client_url …" when the text cannot be an endpoint's URL. */
export function parseEndpointUrl(text: string): URL | string {
  const url = absoluteHttpUrl.test(text) ? parseUrl(text) : null;
  if (url === null) return 'must be an absolute http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not carry credentials';
  // got reads http://unix:/path as a socket of this machine, which it then refuses.
  if (url.hostname === 'unix') return 'must not name a socket';
  return url;
}

/** Parses once: asking URL.canParse first would double the cost of the hottest path. */
function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/**
 * The address a URL names without DNS, or null when its host is a name. The parser has already turned decimal, octal,
 * hexadecimal, shortened and full-width forms, and a trailing dot, into four decimal parts.
 */
export function literalAddress(url: URL): string | null {
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return isIP(host) === 0 ? null : host;
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** RFC 6761: `localhost` and everything below it is this machine, whatever a DNS server says. */
export function isLocalhostName(hostname: string): boolean {
  return /(^|\.)localhost\.?$/i.test(hostname);
}
