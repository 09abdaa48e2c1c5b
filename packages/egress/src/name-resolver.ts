import { promises as dns, type LookupAddress, type RecordWithTtl } from 'node:dns';
import { LRUCache } from 'lru-cache';
import { isLocalhostName } from './endpoint-url.ts';
import { errorCode } from './failure.ts';
import { FairSlots } from './fair-slots.ts';
import { candidateNames, parseHosts, parseSearchRules, SystemFile } from './system-names.ts';

/**
 * Returns addresses of a name, IPv4 first; rejects with an error that has a code if there is none.
 * @param accountId account that calls the name; results are cached for this account only
 */
export type ResolveName = (hostname: string, accountId: number) => Promise<readonly LookupAddress[]>;

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
const TTL_MIN_MS = 5_000;
const TTL_MAX_MS = 300_000;
/** Time for which a failure is cached: short, because a user who has just created the DNS record waits for it. */
const FAILURE_TTL_MS = 5_000;
const NAMES_MAX = 4_096;

/** Limit per family: a name may have thousands of addresses, and a socket would try them one after the other. */
const ADDRESSES_MAX = 16;

/** Limits of concurrent resolutions, in total and per domain. A name whose servers do not respond takes seconds. */
const SLOTS = { max: 256, perGroupMax: 16 };

/** Additional wait for the other family once one is found: some servers never respond to AAAA queries. */
const OTHER_FAMILY_MS = 1_000;

const loopback: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

interface CacheEntry {
  addresses: Promise<readonly LookupAddress[]>;
  /** Null while the query is pending. */
  expiresAtMs: number | null;
  /** Whether the previous query found an address. */
  wasFound: boolean;
}

/**
 * Resolves names from the hosts file and over DNS, without `dns.lookup` (docs/adr/0033-dns-resolver.md),
 * which occupies one of libuv's few threads for as long as the name's servers take; the rest of the process needs these
 * threads for names, files and hashes.
 *
 * Caches addresses for their time to live and failures for a few seconds, and shares a pending query among its callers
 * of one account: a shared cache would show an account, by the duration of a lookup, which names other accounts call.
 * Names that were found before have separate slots from new names, and the names below one domain have a limited number
 * of slots, so that unresponsive servers delay only their own names.
 */
export function createNameResolver(options: NameResolverOptions): ResolveName {
  const { timeoutMs, dnsServers, nowMs = () => performance.now() } = options;
  const hosts = new SystemFile(options.hostsPath ?? '/etc/hosts', parseHosts, nowMs);
  const searchRules = new SystemFile(options.resolvConfPath ?? '/etc/resolv.conf', parseSearchRules, nowMs);
  const cache = new LRUCache<string, CacheEntry>({ maxSize: NAMES_MAX, sizeCalculation: () => 1 });
  const resolvedNameSlots = new FairSlots(SLOTS);
  const newNameSlots = new FairSlots(SLOTS);

  function resolveUncached(
    key: string,
    hostname: string,
    wasFound: boolean,
  ): Promise<readonly LookupAddress[]> {
    const slots = wasFound ? resolvedNameSlots : newNameSlots;
    const entry: CacheEntry = { addresses: Promise.resolve([]), expiresAtMs: null, wasFound };
    entry.addresses = slots
      .run(registrableDomain(hostname), () =>
        query(candidateNames(hostname, searchRules.get()), { timeoutMs, ...(dnsServers && { dnsServers }) }),
      )
      .then(
        ({ addresses, ttlMs }) => {
          entry.wasFound = true;
          entry.expiresAtMs = nowMs() + Math.min(Math.max(ttlMs, TTL_MIN_MS), TTL_MAX_MS);
          return addresses;
        },
        (error) => {
          entry.wasFound = false;
          entry.expiresAtMs = nowMs() + FAILURE_TTL_MS;
          throw error;
        },
      );
    cache.set(key, entry);
    return entry.addresses;
  }

  return async (hostname, accountId) => {
    if (isLocalhostName(hostname)) return loopback;
    const hostsFileAddresses = hosts.get().get(hostname.toLowerCase().replace(/\.$/, ''));
    if (hostsFileAddresses !== undefined) return hostsFileAddresses;
    // RFC 6761: names below `invalid` never exist, so no query is needed.
    if (/(^|\.)invalid\.?$/i.test(hostname)) throw notFound('ENOTFOUND');
    const key = `${accountId} ${hostname}`;
    const entry = cache.get(key);
    if (entry === undefined) return await resolveUncached(key, hostname, false);
    const isExpired = entry.expiresAtMs !== null && nowMs() >= entry.expiresAtMs;
    return await (isExpired ? resolveUncached(key, hostname, entry.wasFound) : entry.addresses);
  };
}

interface ResolvedName {
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
): Promise<ResolvedName> {
  const deadlineMs = performance.now() + timeoutMs;
  let absenceError: unknown = notFound('ENOTFOUND');
  for (const name of names) {
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) throw notFound('ETIMEOUT');
    // Two tries, the second with twice the timeout.
    const resolver = new dns.Resolver({ timeout: Math.max(1, Math.floor(leftMs / 3)), tries: 2 });
    if (dnsServers !== undefined) resolver.setServers(dnsServers);
    const { resolved, error } = await queryBothFamilies(resolver, name, leftMs);
    if (resolved !== undefined) return resolved;
    if (!ABSENT.has(errorCode(error))) throw error;
    absenceError = error;
  }
  throw absenceError;
}

type QueryResult = { resolved: ResolvedName; error?: never } | { resolved?: never; error: unknown };

async function queryBothFamilies(resolver: dns.Resolver, name: string, leftMs: number): Promise<QueryResult> {
  const cancel = () => resolver.cancel();
  const deadline = setTimeout(cancel, leftMs);
  let otherFamilyTimer: NodeJS.Timeout | undefined;
  const limitOtherFamily = (records: RecordWithTtl[]) => {
    // If the event loop was blocked, a response may already have arrived; setImmediate lets it be read before the
    // cancellation.
    otherFamilyTimer ??= setTimeout(() => setImmediate(cancel), OTHER_FAMILY_MS);
    return records;
  };
  const [ipv4, ipv6] = await Promise.allSettled([
    resolver.resolve4(name, { ttl: true }).then(limitOtherFamily),
    resolver.resolve6(name, { ttl: true }).then(limitOtherFamily),
  ]);
  clearTimeout(deadline);
  clearTimeout(otherFamilyTimer);
  const records = [...toRecords(ipv4, 4), ...toRecords(ipv6, 6)];
  if (records.length > 0) {
    const addresses = records.map(({ address, family }) => ({ address, family }));
    return { resolved: { addresses, ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1_000 } };
  }
  // If one family has no address and the other one failed, the failure is reported.
  const errors = [ipv4, ipv6].map((result) =>
    result.status === 'rejected' ? result.reason : notFound('ENODATA'),
  );
  const failure = errors.find((error) => !ABSENT.has(errorCode(error)));
  if (failure === undefined) return { error: errors[0] };
  return { error: errorCode(failure) === 'ECANCELLED' ? notFound('ETIMEOUT') : failure };
}

function toRecords(result: PromiseSettledResult<RecordWithTtl[]>, family: 4 | 6) {
  if (result.status === 'rejected') return [];
  return result.value.slice(0, ADDRESSES_MAX).map(({ address, ttl }) => ({ address, ttl, family }));
}

function notFound(code: string): Error {
  return Object.assign(new Error('the name was not resolved'), { code });
}

/** Public suffixes with two labels: co.uk, com.au, ne.jp. */
const MULTI_LABEL_SUFFIX = /\.(?:ac|co|com|edu|go|gob|gov|ne|net|or|org)\.[a-z]{2}$/;

/** Returns the registered domain of a name, approximately: its last two labels, or three below such a suffix. */
function registrableDomain(hostname: string): string {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return name
    .split('.')
    .slice(MULTI_LABEL_SUFFIX.test(name) ? -3 : -2)
    .join('.');
}
