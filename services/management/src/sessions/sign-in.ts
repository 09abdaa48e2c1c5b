import { createHash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { hash, verify as verifyArgon2 } from '@node-rs/argon2';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Limiter, LimitStore, Taking } from '../http/limits.ts';
import { findPasswordHash } from '../identity/users.ts';
import type { ConsoleSessions } from './console-sessions.ts';

/** `limited`: too many attempts; whether the password was right is not even asked. */
export type SignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterSeconds: number };

export type SignIn = (attempt: {
  /** In lower case, as addresses are stored. */
  email: string;
  password: string;
  clientAddress: string;
}) => Promise<SignInOutcome>;

/** Opens a console session for an e-mail address and its password. An unknown address is told like a wrong password. */
export function createSignIn(deps: {
  prisma: PrismaClient;
  sessions: Pick<ConsoleSessions, 'open'>;
  passwords: PasswordCheck;
  limits: SignInLimits;
}): SignIn {
  const { prisma, sessions, passwords, limits } = deps;
  return async ({ email, password, clientAddress }) => {
    if (passwords.busy()) return { kind: 'limited', retryAfterSeconds: 1 };
    const begun = await limits.begin({ email, clientAddress });
    if (begun.kind === 'refused') return { kind: 'limited', retryAfterSeconds: begun.retryAfterSeconds };
    const user = await findPasswordHash(prisma, email);
    const passwordHash = user?.passwordHash ?? null;
    const isRight = await passwords.isRight(passwordHash, password);
    if (!isRight || !user || passwordHash === null) return { kind: 'refused' };
    const sessionId = await sessions.open({ id: user.id, passwordHash, clientAddress });
    if (sessionId === null) return { kind: 'refused' };
    await limits.succeeded({ email, clientAddress });
    return { kind: 'signed_in', sessionId };
  };
}

export interface PasswordCheck {
  /** Whether it has so much to do that another check would only make everything wait. */
  busy(): boolean;
  /** @param passwordHash null when there is nobody to have one; that takes as long as a wrong password */
  isRight(passwordHash: string | null, password: string): Promise<boolean>;
}

/** Each takes tens of milliseconds of a thread that name resolution and files need too, and 19 MiB. */
const AT_ONCE_MAX = 16;

/**
 * Argon2id, with the parameters that passwords are stored with.
 * @param verify what does the work, and takes the time
 */
export async function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): Promise<PasswordCheck> {
  const nobodysHash = await hash(randomBytes(32));
  let running = 0;
  return {
    busy: () => running >= AT_ONCE_MAX,
    async isRight(passwordHash, password) {
      running++;
      try {
        const matches = await verify(passwordHash ?? nobodysHash, password);
        return matches && passwordHash !== null;
      } finally {
        running--;
      }
    },
  };
}

const WINDOW_SECONDS = 15 * 60;

export interface SignInAttempt {
  /** In lower case. */
  email: string;
  clientAddress: string;
}

/**
 * Failed sign-ins, counted for each e-mail address, whether anybody has it or not, and for each client. Who is refused
 * may try again when the window ends; keys and sessions go on meanwhile.
 */
export interface SignInLimits {
  /** Counts the attempt before its outcome is known, so that many at once count as many. */
  begin(attempt: SignInAttempt): Promise<Taking>;
  succeeded(attempt: SignInAttempt): Promise<void>;
}

/** @param windowSeconds 15 minutes when omitted */
export function createSignInLimits(
  store: Pick<LimitStore, 'createLimiter'>,
  options: { perEmailMax: number; perAddressMax: number; windowSeconds?: number },
): SignInLimits {
  const { perEmailMax, perAddressMax, windowSeconds = WINDOW_SECONDS } = options;
  const limiter = (name: string, callsMax: number): Limiter =>
    store.createLimiter({ name, callsMax, windowSeconds, refusedFromMemory: false });
  const byEmail = limiter('sign-in-email', perEmailMax);
  const byAddress = limiter('sign-in-address', perAddressMax);

  return {
    async begin({ email, clientAddress }) {
      // The address goes first: a client that is out of attempts must not use up those of an e-mail address.
      const taking = await byAddress.take(addressNetwork(clientAddress));
      return taking.kind === 'refused' ? taking : await byEmail.take(emailKey(email));
    },
    async succeeded({ email, clientAddress }) {
      await Promise.all([byAddress.giveBack(addressNetwork(clientAddress)), byEmail.forget(emailKey(email))]);
    },
  };
}

/** Of one length, and no list of addresses to whoever reads the store. */
function emailKey(email: string): string {
  return createHash('sha256').update(email).digest('base64url');
}

/**
 * What stands for one client: an IPv4 address, or the first 64 bits of an IPv6 address, since whoever has one has them
 * all. `address` must be one of the two; a mapped IPv4 address counts as IPv4.
 */
export function addressNetwork(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIP(address) !== 6) return address;
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split('::');
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const missing = new Array<string>(8 - before.length - after.length).fill('0');
  const groups = [...before, ...missing, ...after].map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.slice(0, 4).join(':')}::/64`;
}
