import { promises as dns, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressGuard } from './address-guard.ts';
import { isLocalhostName } from './endpoint-url.ts';
import { AddressForbiddenError, NameNotResolvedError } from './failure.ts';

/** c-ares doubles this for its second try, so a name is given up after about 6 s, inside a delivery's 10 s. */
const queryTimeoutMs = 2_000;
const queryTries = 2;

/** Answers of a DNS server that are quick and final, after which the system's own resolver may be asked. */
const quickRefusals = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'EBADNAME', 'EBADQUERY', 'ENONAME']);

const loopback: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * A lookup for sockets that slow names cannot clog. The system's resolver (`dns.lookup`) holds one of libuv's four
 * threads until the name's servers answer, so four names that never answer would stop every new connection of the process.
 * Names with a dot are therefore asked over DNS itself, which holds no thread; only after a quick "no" does the system's
 * resolver get them, for the hosts file and search domains. Names without a dot go there at once.
 *
 * Concurrent lookups of one name share one query. Nothing is cached beyond that: sockets are kept, names change.
 * Answers with every address, IPv4 first.
 * @param dnsServers `address:port` of the servers to ask instead of the system's, for tests
 */
export function createHostLookup(dnsServers?: readonly string[]): LookupFunction {
  const resolver = new dns.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (dnsServers !== undefined) resolver.setServers(dnsServers);
  const inFlight = new Map<string, Promise<LookupAddress[]>>();

  function resolveShared(hostname: string): Promise<LookupAddress[]> {
    const running = inFlight.get(hostname);
    if (running !== undefined) return running;
    const started = resolveHost(resolver, hostname).finally(() => inFlight.delete(hostname));
    inFlight.set(hostname, started);
    return started;
  }

  return (hostname, _options, callback) => {
    resolveShared(hostname).then(
      (addresses) => callback(null, addresses),
      (error) => callback(error, []),
    );
  };
}

async function resolveHost(resolver: dns.Resolver, hostname: string): Promise<LookupAddress[]> {
  if (isLocalhostName(hostname)) return [...loopback];
  if (!hostname.includes('.')) return dns.lookup(hostname, { all: true, order: 'ipv4first' });
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = [...addressesOf(ipv4, 4), ...addressesOf(ipv6, 6)];
  if (addresses.length > 0) return addresses;
  for (const answer of [ipv4, ipv6]) {
    if (answer.status === 'rejected' && !quickRefusals.has(answer.reason?.code)) throw answer.reason;
  }
  return dns.lookup(hostname, { all: true, order: 'ipv4first' });
}

function addressesOf(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}

/**
 * Wraps a lookup so that a socket only ever learns addresses the guard allows. The socket dials what it is given and
 * resolves nothing itself, so a name that answers differently a moment later (DNS rebinding) gains nothing. All allowed
 * addresses are handed on, for the socket's choice between families.
 */
export function createGuardedLookup(lookup: LookupFunction, guard: AddressGuard): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer, family) => {
      if (error) return callback(new NameNotResolvedError(hostname, { cause: error }), []);
      const found: LookupAddress[] = Array.isArray(answer)
        ? answer
        : [{ address: answer, family: family ?? 4 }];
      const allowed = found.filter(({ address }) => guard.allows(address));
      const [first] = allowed;
      if (first === undefined) return callback(refusal(hostname, found), []);
      if (options.all) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}

function refusal(hostname: string, found: readonly LookupAddress[]): Error {
  const [first] = found;
  return first === undefined ? new NameNotResolvedError(hostname) : new AddressForbiddenError(first.address);
}
