import { promises as dns, type LookupAddress, type RecordWithTtl } from 'node:dns';
import { LRUCache } from 'lru-cache';
import { isLocalhostName } from './endpoint-url.ts';
import { errorCode } from './failure.ts';
import { FairSlots } from './fair-slots.ts';
import { candidatesOf, parseHosts, parseSearchRules, SystemFile } from './system-names.ts';

/** Returns every address of a name, IPv4 first; rejects with an error that has a code if there is none. */
export type ResolveName = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface NameResolverOptions {
  /** Deadline for all queries for a name, from the time when it has a slot. */
  timeoutMs: number;
  /** `address:port` of the DNS servers; defaults to those of the system. */
  dnsServers?: readonly string[];
  hostsPath?: string;
  resolvConfPath?: string;
  nowMs?: () => number;
}

/** Bounds for the time to live of cached addresses. */
const FOUND_MIN_MS = 5_000;
const FOUND_MAX_MS = 300_000;
/** Short, because a user who has just created the record waits for it. */
const FAILED_MS = 5_000;
const NAMES_MAX = 4_096;

/** Limit per family: a name may have thousands of addresses, and a socket would try them one after the other. */
const ADDRESSES_MAX = 16;

/** Names whose servers do not respond occupy a slot for seconds, so these limits bound the new names per second. */
const PLACES = { max: 256, perGroupMax: 16 };

/** Additional wait for the other family once one is found: some servers never respond to AAAA queries. */
const OTHER_FAMILY_MS = 1_000;

const loopback: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

interface Known {
  addresses: Promise<readonly LookupAddress[]>;
  /** Null while the query is pending. */
  untilMs: number | null;
  /** Whether the previous query found an address. */
  wasFound: boolean;
}

/**
 * Resolves names from the hosts file and over DNS, without `dns.lookup` (docs/adr/0033-dns-resolver.md),
 * which occupies one of libuv's few threads for as long as the name's servers take; the rest of the process needs these
 * threads for names, files and hashes.
 *
 * Caches addresses for their time to live and failures for a few seconds, and shares a pending query among its callers.
 * Names that were found before have separate slots from new names, and the names below one domain have a limited number
 * of slots, so that unresponsive servers delay only their own names.
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
    // RFC 6761: names below `invalid` never exist, so no query is needed.
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

/** Codes that mean that the name, or its address of one family, does not exist. Other errors are inconclusive. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/**
 * Queries one candidate name after the other until one is found. Each name has its own channel, because c-ares adapts
 * its timeouts to other names of a channel and can only cancel all queries of a channel.
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
    // Two tries, the second with twice the timeout.
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
    // If the event loop was blocked, a response may already have arrived; setImmediate lets it be read before the
    // cancellation.
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
  // If one family has no address and the other one failed, the failure is reported.
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

/** Public suffixes with two labels: co.uk, com.au, ne.jp. */
const DEEPER = /\.(?:ac|co|com|edu|go|gob|gov|ne|net|or|org)\.[a-z]{2}$/;

/** Approximates the registered domain of a name. */
function domainOf(hostname: string): string {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return name
    .split('.')
    .slice(DEEPER.test(name) ? -3 : -2)
    .join('.');
}
