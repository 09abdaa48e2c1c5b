import { promises as dns, type LookupAddress, type RecordWithTtl } from 'node:dns';
import { LRUCache } from 'lru-cache';
import { isLocalhostName } from './endpoint-url.ts';
import { errorCode } from './failure.ts';
import { FairSlots } from './fair-slots.ts';
import { candidatesOf, parseHosts, parseSearchRules, SystemFile } from './system-names.ts';

/** Every address of a name, IPv4 first; rejects with an error that has a code when there is none. */
export type ResolveName = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface NameResolverOptions {
  /** One deadline over all questions for a name, from its turn on. */
  timeoutMs: number;
  /** `address:port` of the servers to ask instead of the system's. */
  dnsServers?: readonly string[];
  hostsPath?: string;
  resolvConfPath?: string;
  nowMs?: () => number;
}

/** A name that is found is asked for again when its time to live is over, but neither sooner nor later than these. */
const FOUND_MIN_MS = 5_000;
const FOUND_MAX_MS = 300_000;
/** Short: whoever has just made the record waits for it. */
const FAILED_MS = 5_000;
const NAMES_MAX = 4_096;

/** Of each family: a name may have thousands, and a socket would try one after the other. */
const ADDRESSES_MAX = 16;

/** Silent names hold their places for seconds, so these bound how many new names can be asked for in a second. */
const PLACES = { max: 256, perGroupMax: 16 };

/** When one family is found, how long the other one may take: some servers never answer for IPv6. */
const OTHER_FAMILY_MS = 1_000;

const loopback: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

interface Known {
  addresses: Promise<readonly LookupAddress[]>;
  /** Null while they are being asked for. */
  untilMs: number | null;
  /** Whether there were any, the last time. */
  wasFound: boolean;
}

/**
 * Resolves names over DNS by itself, from the hosts file first (docs/adr/0033-dns-resolver.md). Nothing here
 * waits for one of libuv's threads, which `dns.lookup` holds for as long as a name's servers please, and which everything
 * else of the process needs for names, files and hashes.
 *
 * Answers are kept for their time to live, failures for a moment. Questions at once for one name are one. A name that was
 * found before does not wait behind names that never were, and names below one domain have no more than a few places, so
 * silent servers hold up their own names only.
 */
export function createNameResolver(options: NameResolverOptions): ResolveName {
  const { timeoutMs, dnsServers, nowMs = () => performance.now() } = options;
  const hosts = new SystemFile(options.hostsPath ?? '/etc/hosts', parseHosts, nowMs);
  const searchRules = new SystemFile(options.resolvConfPath ?? '/etc/resolv.conf', parseSearchRules, nowMs);
  const known = new LRUCache<string, Known>({ maxSize: NAMES_MAX, sizeCalculation: () => 1 });
  const placesOfFound = new FairSlots(PLACES);
  const placesOfNew = new FairSlots(PLACES);

  function ask(hostname: string, wasFound: boolean): Promise<readonly LookupAddress[]> {
    const places = wasFound ? placesOfFound : placesOfNew;
    const entry: Known = { addresses: Promise.resolve([]), untilMs: null, wasFound };
    entry.addresses = places
      .run(domainOf(hostname), () =>
        query(candidatesOf(hostname, searchRules.get()), { timeoutMs, ...(dnsServers && { dnsServers }) }),
      )
      .then(
        ({ addresses, ttlMs }) => {
          entry.wasFound = true;
          entry.untilMs = nowMs() + Math.min(Math.max(ttlMs, FOUND_MIN_MS), FOUND_MAX_MS);
          return addresses;
        },
        (error) => {
          entry.wasFound = false;
          entry.untilMs = nowMs() + FAILED_MS;
          throw error;
        },
      );
    known.set(hostname, entry);
    return entry.addresses;
  }

  return async (hostname) => {
    if (isLocalhostName(hostname)) return loopback;
    const ofMachine = hosts.get().get(hostname.toLowerCase().replace(/\.$/, ''));
    if (ofMachine !== undefined) return ofMachine;
    // RFC 6761: it never exists, and nobody needs to be asked.
    if (/(^|\.)invalid\.?$/i.test(hostname)) throw notFound('ENOTFOUND');
    const entry = known.get(hostname);
    if (entry === undefined) return await ask(hostname, false);
    const isOver = entry.untilMs !== null && nowMs() >= entry.untilMs;
    return await (isOver ? ask(hostname, entry.wasFound) : entry.addresses);
  };
}

interface Found {
  addresses: readonly LookupAddress[];
  ttlMs: number;
}

/** What says that there is no such name, or no address of that family. Everything else says nothing about the name. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/**
 * Asks for one name after the other until one is found. A channel of its own for each: c-ares shortens its timeouts by
 * what other names of a channel took, and can only cancel all of a channel's questions.
 */
async function query(
  names: readonly string[],
  { timeoutMs, dnsServers }: { timeoutMs: number; dnsServers?: readonly string[] },
): Promise<Found> {
  const deadlineMs = performance.now() + timeoutMs;
  let absence: unknown = notFound('ENOTFOUND');
  for (const name of names) {
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) throw notFound('ETIMEOUT');
    // Two tries, the second one of twice the time.
    const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(leftMs / 3)), tries: 2 });
    if (dnsServers !== undefined) resolver.setServers(dnsServers);
    const { found, error } = await bothFamilies(resolver, name, leftMs);
    if (found !== undefined) return found;
    if (!ABSENT.has(errorCode(error))) throw error;
    absence = error;
  }
  throw absence;
}

type Answer = { found: Found; error?: never } | { found?: never; error: unknown };

async function bothFamilies(resolver: dns.Resolver, name: string, leftMs: number): Promise<Answer> {
  const giveUp = () => resolver.cancel();
  const deadline = setTimeout(giveUp, leftMs);
  let graceForOther: NodeJS.Timeout | undefined;
  const hurry = (records: RecordWithTtl[]) => {
    // An answer may have come while this process was busy; it is read before the cancelling.
    graceForOther ??= setTimeout(() => setImmediate(giveUp), OTHER_FAMILY_MS);
    return records;
  };
  const [ipv4, ipv6] = await Promise.allSettled([
    resolver.resolve4(name, { ttl: true }).then(hurry),
    resolver.resolve6(name, { ttl: true }).then(hurry),
  ]);
  clearTimeout(deadline);
  clearTimeout(graceForOther);
  const records = [...recordsOf(ipv4, 4), ...recordsOf(ipv6, 6)];
  if (records.length > 0) {
    const addresses = records.map(({ address, family }) => ({ address, family }));
    return { found: { addresses, ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1_000 } };
  }
  // One family without an address says nothing of the other one, whose servers failed.
  const errors = [ipv4, ipv6].map((answer) =>
    answer.status === 'rejected' ? answer.reason : notFound('ENODATA'),
  );
  const failure = errors.find((error) => !ABSENT.has(errorCode(error)));
  if (failure === undefined) return { error: errors[0] };
  return { error: errorCode(failure) === 'ECANCELLED' ? notFound('ETIMEOUT') : failure };
}

function recordsOf(answer: PromiseSettledResult<RecordWithTtl[]>, family: 4 | 6) {
  if (answer.status === 'rejected') return [];
  return answer.value.slice(0, ADDRESSES_MAX).map(({ address, ttl }) => ({ address, ttl, family }));
}

function notFound(code: string): Error {
  return Object.assign(new Error('the name was not resolved'), { code });
}

/** Where names are given out one level deeper: co.uk, com.au, ne.jp. */
const DEEPER = /\.(?:ac|co|com|edu|go|gob|gov|ne|net|or|org)\.[a-z]{2}$/;

/** Whose name it is, as well as that can be told from the name. */
function domainOf(hostname: string): string {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return name
    .split('.')
    .slice(DEEPER.test(name) ? -3 : -2)
    .join('.');
}
