import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** Names in the machine's hosts file, with their addresses. */
export type Hosts = ReadonlyMap<string, readonly LookupAddress[]>;

/** Rules by which the system completes names that are not fully qualified. */
export interface SearchRules {
  /** Search domains, in the order in which they are tried. */
  search: readonly string[];
  /** A name with this many dots counts as fully qualified. */
  ndots: number;
}

const NDOTS_DEFAULT = 1;
const NDOTS_MAX = 15;
const SEARCH_MAX = 16;

/** Parses a hosts file (an address, then its names). The addresses of all lines of a name are combined, IPv4 first. */
export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = splitFields(line.replace(/#.*/, ''));
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((one) => one.toLowerCase())) {
      const addresses = hosts.get(name) ?? [];
      addresses.push({ address, family });
      hosts.set(name, addresses);
    }
  }
  for (const addresses of hosts.values()) addresses.sort((one, other) => one.family - other.family);
  return hosts;
}

/** Parses `search`, `domain` and `options ndots` of a resolv.conf; the last `search` or `domain` line is used. */
export function parseSearchRules(text: string): SearchRules {
  let search: string[] = [];
  let ndots = NDOTS_DEFAULT;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = splitFields(line.replace(/^\s*[#;].*/, ''));
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
 * Returns the names to query, in order, until one is found. A name with a dot is tried unchanged before search domains,
 * regardless of `ndots`: most such names are fully qualified, and the owner of a search domain must not be able to
 * respond for them. A name with dots, at least `ndots`, or with a trailing one gets no search domains.
 */
export function candidateNames(hostname: string, { search, ndots }: SearchRules): string[] {
  if (hostname.endsWith('.')) return [hostname.slice(0, -1)];
  const dots = hostname.split('.').length - 1;
  if (dots > 0 && dots >= ndots) return [hostname];
  const completed = search.map((domain) => `${hostname}.${domain}`);
  return dots > 0 || ndots === 0 ? [hostname, ...completed] : [...completed, hostname];
}

function splitFields(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== '');
}

/** Maximum age of a file's content before a lookup triggers a background read. */
const FRESH_MS = 5_000;

/**
 * Content of a small system file. It is read once by the constructor and later in the background, because a lookup must
 * not wait for libuv's threads, which may all be busy. A file that is missing or unreadable counts as empty.
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
    this.#text = readOrEmpty(path);
    this.#parsed = parse(this.#text);
    this.#readAtMs = nowMs();
  }

  /** Returns the cached content, and starts a background read if it is too old. */
  get(): T {
    if (this.#nowMs() - this.#readAtMs >= FRESH_MS) void this.refresh();
    return this.#parsed;
  }

  /** Resolves once the file has been read again. */
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

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
