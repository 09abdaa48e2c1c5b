import { isIP } from 'node:net';

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

/** RFC 6761: `localhost` and everything below it is this machine, whatever a DNS server says. */
export function isLocalhostName(hostname: string): boolean {
  return /(^|\.)localhost\.?$/i.test(hostname);
}
