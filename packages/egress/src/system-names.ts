import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** Names of the machine's own, as its hosts file has them. */
export type Hosts = ReadonlyMap<string, readonly LookupAddress[]>;

/** What the machine adds to names that are not whole. */
export interface SearchRules {
  /** Domains, in the order in which they are tried. */
  search: readonly string[];
  /** A name with so many dots is whole. */
  ndots: number;
}

const NDOTS_DEFAULT = 1;
const NDOTS_MAX = 15;
const SEARCH_MAX = 16;

/** Reads a hosts file: an address, then its names; all lines of a name count, IPv4 first. */
export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = wordsOf(line.replace(/#.*/, ''));
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((one) => one.toLowerCase())) {
      const found = hosts.get(name) ?? [];
      found.push({ address, family });
      hosts.set(name, found);
    }
  }
  for (const found of hosts.values()) found.sort((one, other) => one.family - other.family);
  return hosts;
}

/** Reads the `search`, `domain` and `options ndots` of a resolv.conf: of the first two the last one counts. */
export function parseSearchRules(text: string): SearchRules {
  let search: string[] = [];
  let ndots = NDOTS_DEFAULT;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = wordsOf(line.replace(/^\s*[#;].*/, ''));
    if (keyword === 'search' || keyword === 'domain') search = values;
    if (keyword !== 'options') continue;
    for (const value of values) {
      const [, digits] = /^ndots:(\d{1,3})$/.exec(value) ?? [];
      if (digits !== undefined) ndots = Math.min(Number(digits), NDOTS_MAX);
    }
  }
  const domains = search.map((domain) => domain.toLowerCase().replace(/\.$/, '')).filter((one) => one !== '');
  return { search: [...new Set(domains)].slice(0, SEARCH_MAX), ndots };
}

/**
 * The names to ask for, in order, until one is found. A name with a dot is asked for as it is before any domain is added,
 * whatever `ndots` says: most are whole, and nobody who has a search domain should be able to answer for them. One that has
 * enough dots, or ends in one, gets none at all.
 */
export function candidatesOf(hostname: string, { search, ndots }: SearchRules): string[] {
  if (hostname.endsWith('.')) return [hostname.slice(0, -1)];
  const dots = hostname.split('.').length - 1;
  if (dots > 0 && dots >= ndots) return [hostname];
  const completed = search.map((domain) => `${hostname}.${domain}`);
  return dots > 0 || ndots === 0 ? [hostname, ...completed] : [...completed, hostname];
}

function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== '');
}

/** How old what is known of a file may be before it is read again, beside the lookup that asks for it. */
const FRESH_MS = 5_000;

/**
 * What a small file of the system says. Read once when this is made; later changes are seen by reading it again in the
 * background, because a lookup must not wait for libuv's threads, which other things may hold. A file that is not there
 * or cannot be read says nothing.
 */
export class SystemFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  readonly #nowMs: () => number;
  #text: string;
  #parsed: T;
  #readAtMs: number;
  #reading: Promise<void> | null = null;

  constructor(path: string, parse: (text: string) => T, nowMs: () => number) {
    this.#path = path;
    this.#parse = parse;
    this.#nowMs = nowMs;
    this.#text = readOrNothing(path);
    this.#parsed = parse(this.#text);
    this.#readAtMs = nowMs();
  }

  /** As far as it is known; what has become old is read anew for the next who asks. */
  get(): T {
    if (this.#nowMs() - this.#readAtMs >= FRESH_MS) void this.refresh();
    return this.#parsed;
  }

  /** Resolves once it is known what the file says now. */
  refresh(): Promise<void> {
    this.#reading ??= readFile(this.#path, 'utf8')
      .catch(() => '')
      .then((text) => {
        this.#reading = null;
        this.#readAtMs = this.#nowMs();
        if (text === this.#text) return;
        this.#text = text;
        this.#parsed = this.#parse(text);
      });
    return this.#reading;
  }
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
