import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressGuard } from './address-guard.ts';
import { AddressForbiddenError, NameNotResolvedError } from './failure.ts';
import type { ResolveName } from './name-resolver.ts';

/** A lookup for sockets. */
export function lookupBy(resolve: ResolveName): LookupFunction {
  return (hostname, _options, callback) => {
    resolve(hostname).then(
      (addresses) => callback(null, [...addresses]),
      (error) => callback(error, []),
    );
  };
}

/**
 * Wraps a lookup so that a socket only ever learns addresses the guard allows. The socket dials what it is given and
 * resolves nothing itself, so a name that answers differently a moment later (DNS rebinding) gains nothing, and neither does one whose answer was kept: each
 * dialling is judged. All allowed addresses are handed on, for the socket's choice between families.
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
