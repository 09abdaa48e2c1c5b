import type { RequestOptions } from 'node:http';
import { urlToHttpOptions } from 'node:url';
import type { AddressGuard } from './address-guard.ts';
import { literalAddress, parseEndpointUrl } from './endpoint-url.ts';

/** A URL as it was parsed and judged once, so that not every request to it costs that again. */
export type KnownEndpoint =
  | { url: URL; problem?: never; forbiddenAddress?: never }
  /** A phrase that completes "The URL …". */
  | { url?: never; problem: string; forbiddenAddress?: never }
  /** What the URL names without DNS, and the guard does not allow. */
  | { url?: never; problem?: never; forbiddenAddress: string };

/** What node needs to know of a URL. */
export type Destination = Pick<RequestOptions, 'protocol' | 'hostname' | 'port' | 'path'>;

/** Remembers the URLs used lately; the one that was learnt first makes room. */
export class KnownEndpoints {
  readonly #byText = new Map<string, KnownEndpoint>();
  readonly #destinations = new Map<string, Destination>();
  readonly #guard: AddressGuard;
  readonly #sizeMax: number;

  constructor(guard: AddressGuard, sizeMax: number) {
    this.#guard = guard;
    this.#sizeMax = sizeMax;
  }

  of(text: string): KnownEndpoint {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const endpoint = this.#judge(text);
    remember(this.#byText, text, endpoint, this.#sizeMax);
    return endpoint;
  }

  #judge(text: string): KnownEndpoint {
    const url = parseEndpointUrl(text);
    if (typeof url === 'string') return { problem: url };
    const literal = literalAddress(url);
    return literal === null || this.#guard.allows(literal) ? { url } : { forbiddenAddress: literal };
  }

  destinationOf(url: URL): Destination {
    const known = this.#destinations.get(url.href);
    if (known !== undefined) return known;
    const { protocol, hostname, port, path } = urlToHttpOptions(url);
    const destination: Destination = { protocol, hostname, port, path };
    remember(this.#destinations, url.href, destination, this.#sizeMax);
    return destination;
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value, sizeMax: number): void {
  if (map.size >= sizeMax) {
    for (const first of map.keys()) {
      map.delete(first);
      break;
    }
  }
  map.set(key, value);
}
