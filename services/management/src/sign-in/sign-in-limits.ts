import { createHash } from 'node:crypto';
import type { LimitStore } from '../limits/limit-store.ts';
import type { Limiter, Taking } from '../limits/limiter.ts';
import { addressNetwork } from './address-network.ts';

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
