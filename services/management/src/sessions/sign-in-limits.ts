import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { Limiter, LimitResult, LimitStore } from '../http/limits.ts';
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

/**
 * Limits failed sign-ins with an e-mail address (whether or not a user has it) from one network and from everywhere,
 * and those of each client. A recognized device has only a separate limit, which others cannot use up. A rejected
 * client may try again when the window ends; keys and sessions keep working.
 */
export interface SignInLimits {
  /** Counts the attempt before its result is known, so that concurrent attempts are all counted. */
  countAttempt(attempt: SignInAttempt): Promise<LimitResult>;
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

  return {
    async countAttempt({ email, clientAddress, device }) {
      if (device) return await byDevice.consume(keyOf(device.id, email));
      // The order ensures that a client that exceeds its own limit does not use up a limit that it shares with others.
      const clientResult = await byAddress.consume(addressNetwork(clientAddress));
      if (clientResult.kind === 'rejected') return clientResult;
      const networkResult = await byNetwork.consume(keyOf(networkOf(clientAddress), email));
      return networkResult.kind === 'rejected' ? networkResult : await byEmail.consume(keyOf(email));
    },
    async recordSuccess({ email, clientAddress, device }) {
      if (device) return await byDevice.reset(keyOf(device.id, email));
      await Promise.all([
        byAddress.refund(addressNetwork(clientAddress)),
        byNetwork.reset(keyOf(networkOf(clientAddress), email)),
        byEmail.refund(keyOf(email)),
      ]);
    },
  };
}

/** Hashes the parts to a fixed length, so that the store reveals no e-mail addresses. */
function keyOf(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/** Returns the network of a client, whose addresses are usually adjacent: 256 IPv4 addresses, or its IPv6 network. */
function networkOf(address: string): string {
  const client = addressNetwork(address);
  return isIP(client) === 4 ? `${client.slice(0, client.lastIndexOf('.'))}.0/24` : client;
}

/**
 * Returns the identity of one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a client controls
 * all addresses of such a network. `address` must be one of the two; a mapped IPv4 address counts as IPv4.
 */
export function addressNetwork(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIP(address) !== 6) return address;
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split('::');
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':'));
  const [leadingGroups, trailingGroups] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeroGroups = new Array<string>(8 - leadingGroups.length - trailingGroups.length).fill('0');
  const groups = [...leadingGroups, ...zeroGroups, ...trailingGroups].map((group) =>
    Number.parseInt(group, 16).toString(16),
  );
  return `${groups.slice(0, 4).join(':')}::/64`;
}
