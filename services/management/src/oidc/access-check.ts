import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { type Pool, type SecretBox, SecretBoxError } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Logger } from '@runhook/runtime';
import { inActorTransaction } from '../audit/actor.ts';
import { UnavailableError } from '../http/errors.ts';
import { readAccountsClaim } from './claims.ts';
import {
  type ClaimedIdentity,
  claimCheck,
  endAccess,
  postponeCheck,
  readAccess,
  recordConfirmed,
  storeRotatedToken,
} from './identities.ts';
import { updateMemberships } from './memberships.ts';
import type { Provider, ProviderUser } from './provider.ts';
import { type OidcSettings, withoutSlash } from './settings.ts';

/**
 * `unmanaged`: operators manage the user. `granted`: the latest check is recent. `confirmed`: a check has just ended, and
 * may have changed the memberships. `ended`: the provider does not confirm the user.
 */
export type Verdict = 'unmanaged' | 'granted' | 'confirmed' | 'ended';

/**
 * Checks the access of users at the provider with their refresh tokens, before a session or an API key is used:
 *
 *     granted ── CHECK_MS, or a logout token ──▶ due ── claimed by one process ──▶ checking
 *     checking ── confirmed ──▶ granted         checking ── rejected ──▶ ended ── sign-in ──▶ granted
 *     checking ── no answer ──▶ granted for RETRY_SECONDS, at most UNCHECKED_SECONDS_MAX since the latest answer
 */
export interface AccessCheck {
  /** Throws an {@link UnavailableError} if the provider has not answered for too long. */
  check(userId: number): Promise<Verdict>;
}

/** Time for which an answer of the provider is valid. */
export const CHECK_MS = 60_000;
const RETRY_SECONDS = 10;
/** Time for which users stay signed in while the provider does not answer. */
const UNCHECKED_SECONDS_MAX = 15 * 60;
/** First and longest interval, and maximum, of the wait for the check of another process. */
const POLL_MS = { first: 50, max: 1_000 };
const WAIT_MS = 10_000;

export function createAccessCheck(deps: {
  pool: Pool;
  prisma: PrismaClient;
  secrets: SecretBox;
  provider: Provider;
  settings: OidcSettings;
  logger: Pick<Logger, 'info' | 'warn'>;
  checkMs: number;
}): AccessCheck {
  const { pool, prisma, secrets, provider, settings, logger, checkMs } = deps;
  const pending = new Map<number, Promise<Verdict>>();

  async function checkDue(userId: number): Promise<Verdict> {
    const deadlineMs = performance.now() + WAIT_MS;
    for (let pollMs = POLL_MS.first; ; pollMs = Math.min(2 * pollMs, POLL_MS.max)) {
      const identity = await claimCheck(pool, userId, randomUUID());
      if (identity !== null) return await checkClaimed(identity);
      const access = await readAccess(pool, userId);
      if (access === null || access.is_ended) return 'ended';
      if (!access.is_due) return 'confirmed';
      if (performance.now() > deadlineMs) throw new UnavailableError();
      await wait(pollMs);
    }
  }

  async function checkClaimed(identity: ClaimedIdentity): Promise<Verdict> {
    const refreshToken = decrypt(secrets, identity.refresh_token_ciphertext);
    if (refreshToken === null) return await end(identity, 'no refresh token');
    const result = await provider.refresh(refreshToken, identity.subject, (rotated) =>
      storeRotatedToken(pool, identity, secrets.encrypt(rotated)),
    );
    if (result.kind === 'rejected') return await end(identity, result.reason);
    if (result.kind === 'confirmed') {
      return await confirm(identity, result.user).catch(async (error: unknown) => {
        await postponeCheck(pool, identity, RETRY_SECONDS);
        throw error;
      });
    }
    const isTolerated = identity.unchecked_seconds < UNCHECKED_SECONDS_MAX;
    const { error: err } = result;
    logger.warn({ err, userId: identity.user_id, isTolerated }, 'identity provider did not answer a check');
    await postponeCheck(pool, identity, isTolerated ? RETRY_SECONDS : 0);
    if (!isTolerated) throw new UnavailableError();
    return 'granted';
  }

  async function confirm(identity: ClaimedIdentity, user: ProviderUser): Promise<Verdict> {
    const { claimAccounts } = settings;
    const claim = claimAccounts === null ? null : await readAccountsClaim(prisma, claimAccounts, user.claims);
    if (claim?.problems) return await end(identity, 'invalid claim', claim.problems);
    const ciphertext = user.refreshToken === null ? null : secrets.encrypt(user.refreshToken);
    await inActorTransaction(prisma, { kind: 'service' }, async (transaction) => {
      const isCurrent = await recordConfirmed(transaction, identity, ciphertext, checkMs / 1_000);
      if (isCurrent && claim)
        await updateMemberships(transaction, BigInt(identity.user_id), claim.memberships);
    });
    return 'confirmed';
  }

  async function end(identity: ClaimedIdentity, reason: string, problems?: unknown): Promise<Verdict> {
    const isEnded = await endAccess(pool, identity);
    if (!isEnded) return 'confirmed';
    logger.warn({ userId: identity.user_id, reason, problems }, 'access ended by the identity provider');
    return 'ended';
  }

  return {
    async check(userId) {
      const access = await readAccess(pool, userId);
      if (access === null) return 'unmanaged';
      // An identity of a provider that is no longer configured cannot be checked.
      const isConfigured = withoutSlash(access.issuer) === withoutSlash(settings.issuer);
      if (access.is_ended || !isConfigured) return 'ended';
      if (!access.is_due) return 'granted';
      const joined = pending.get(userId) ?? checkDue(userId).finally(() => pending.delete(userId));
      pending.set(userId, joined);
      return await joined;
    },
  };
}

/** Returns null without a token, and for one whose key is no longer configured: its user must sign in again. */
function decrypt(secrets: SecretBox, ciphertext: string | null): string | null {
  try {
    return ciphertext === null ? null : secrets.decrypt(ciphertext);
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}
