import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { addressNetwork } from '../http/client-network.ts';
import type { CountedResult, Limiter, LimitStore } from '../http/limits.ts';
import type { RecognizedDevice } from './device-cookies.ts';

export const WINDOW_SECONDS = 15 * 60;
/** Limit of one e-mail address from all networks together, as a multiple of the limit of one network. */
const NETWORKS_FACTOR = 20;

export interface SignInAttempt {
  /** E-mail address in lower case. */
  email: string;
  clientAddress: string;
  /** Null for a browser in which this user has not signed in. */
  device: RecognizedDevice | null;
}

/** `accepted` has the number of failed attempts of the client's site, or of the device, in the current window. */
export type SignInLimitResult =
  | { kind: 'accepted'; failures: number }
  | { kind: 'rejected'; retryAfterSeconds: number };

/**
 * Limits failed sign-ins with an e-mail address (whether or not a user has it) from one network and from everywhere,
 * and those of each client. A recognized device has only a separate limit, which others cannot use up. A rejected
 * client may try again when the window ends; keys and sessions keep working.
 */
export interface SignInLimits {
  /** Counts the attempt before its result is known, so that concurrent attempts are all counted. */
  countAttempt(attempt: SignInAttempt): Promise<SignInLimitResult>;
  /** Removes an accepted attempt from the counts, because its password was not checked. */
  refundAttempt(attempt: SignInAttempt): Promise<void>;
  recordSuccess(attempt: SignInAttempt): Promise<void>;
}

/** @param windowSeconds 15 minutes when omitted */
export function createSignInLimits(
  store: Pick<LimitStore, 'createLimiter'>,
  options: { perEmailMax: number; perAddressMax: number; windowSeconds?: number },
): SignInLimits {
  const { perEmailMax, perAddressMax, windowSeconds = WINDOW_SECONDS } = options;
  const limiter = (name: string, callsMax: number): Limiter =>
    store.createLimiter({ name, callsMax, windowSeconds, rejectsFromMemory: false });
  const byDevice = limiter('sign-in-device', perEmailMax);
  const byAddress = limiter('sign-in-address', perAddressMax);
  const byNetwork = limiter('sign-in-network', perEmailMax);
  const byEmail = limiter('sign-in-email', perEmailMax * NETWORKS_FACTOR);
  // Not a limit: its count decides whose password is checked first.
  const bySite = limiter('sign-in-site', Number.MAX_SAFE_INTEGER);

  return {
    async countAttempt({ email, clientAddress, device }) {
      if (device) return resultOf(await byDevice.consume(keyOf(device.id, email)));
      // The order ensures that a client that exceeds its own limit does not use up a limit that it shares with others.
      const clientResult = await byAddress.consume(addressNetwork(clientAddress));
      if (clientResult.kind === 'rejected') return clientResult;
      const networkResult = await byNetwork.consume(keyOf(networkOf(clientAddress), email));
      if (networkResult.kind === 'rejected') return networkResult;
      const emailResult = await byEmail.consume(keyOf(email));
      return emailResult.kind === 'rejected'
        ? emailResult
        : resultOf(await bySite.consume(siteOf(clientAddress)));
    },
    async refundAttempt({ email, clientAddress, device }) {
      if (device) return await byDevice.refund(keyOf(device.id, email));
      await Promise.all([
        byAddress.refund(addressNetwork(clientAddress)),
        byNetwork.refund(keyOf(networkOf(clientAddress), email)),
        byEmail.refund(keyOf(email)),
        bySite.refund(siteOf(clientAddress)),
      ]);
    },
    async recordSuccess({ email, clientAddress, device }) {
      if (device) return await byDevice.reset(keyOf(device.id, email));
      await Promise.all([
        byAddress.refund(addressNetwork(clientAddress)),
        byNetwork.reset(keyOf(networkOf(clientAddress), email)),
        byEmail.refund(keyOf(email)),
        bySite.refund(siteOf(clientAddress)),
      ]);
    },
  };
}

/** The count of an accepted attempt includes the attempt itself. */
function resultOf(result: CountedResult): SignInLimitResult {
  return result.kind === 'rejected' ? result : { kind: 'accepted', failures: Math.max(0, result.count - 1) };
}

/** Hashes the parts to a fixed length, so that the store reveals no e-mail addresses. */
function keyOf(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/** Returns the network of a client, whose addresses are usually adjacent: 256 IPv4 addresses, or its IPv6 network. */
export function networkOf(address: string): string {
  const client = addressNetwork(address);
  return isIP(client) === 4 ? `${client.slice(0, client.lastIndexOf('.'))}.0/24` : client;
}

/**
 * Returns the site of a client: 256 IPv4 addresses, or the first 48 bits of an IPv6 address, which providers assign to
 * one site and which contain 65,536 of the networks that count as one client.
 */
export function siteOf(address: string): string {
  const network = networkOf(address);
  if (!network.endsWith('::/64')) return network;
  return `${network.split(':').slice(0, 3).join(':')}::/48`;
}
