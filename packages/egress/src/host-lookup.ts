import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressGuard } from './address-guard.ts';
import { AddressForbiddenError, NameNotResolvedError } from './failure.ts';
import type { ResolveName } from './name-resolver.ts';

/** Adapts a resolver to the lookup function of sockets that one account opens. */
export function createLookup(resolve: ResolveName, accountId: number): LookupFunction {
  return (hostname, _options, callback) => {
    resolve(hostname, accountId).then(
      (addresses) => callback(null, [...addresses]),
      (error) => callback(error, []),
    );
  };
}

/**
 * Wraps a lookup so that a socket receives allowed addresses only. The socket connects to these addresses and resolves
 * nothing itself, so a name whose addresses change afterwards (DNS rebinding) cannot bypass the guard; cached addresses
 * are checked for each connection as well. Returns all allowed addresses, so that the socket can choose between
 * families.
 */
export function createGuardedLookup(lookup: LookupFunction, guard: AddressGuard): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, result, family) => {
      if (error) return callback(new NameNotResolvedError(hostname, { cause: error }), []);
      const addresses: LookupAddress[] = Array.isArray(result)
        ? result
        : [{ address: result, family: family ?? 4 }];
      const allowed = addresses.filter(({ address }) => guard.allows(address));
      const [first] = allowed;
      if (first === undefined) return callback(createLookupError(hostname, addresses), []);
      if (options.all) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}

function createLookupError(hostname: string, addresses: readonly LookupAddress[]): Error {
  const [first] = addresses;
  return first === undefined ? new NameNotResolvedError(hostname) : new AddressForbiddenError(first.address);
}
