import { hasInvalidText, isLongerThan } from '@runhook/contract';
import { createCredential, hashCredential, type SecretBox } from '@runhook/database';
import { isRejection, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { inActorTransaction } from '../audit/actor.ts';
import type { ConsoleSessions, SessionClient } from '../sessions/console-sessions.ts';
import { readAccountsClaim } from './claims.ts';
import { recordSignIn } from './identities.ts';
import { updateMemberships } from './memberships.ts';
import type { ProviderUser } from './provider.ts';
import type { OidcSettings } from './settings.ts';

/**
 * Why a user whom the provider authenticated is not signed in. `unknown_user`: new users are not created.
 * `email_missing`, `email_taken`: a new user cannot be created. `invalid_claim`: the accounts cannot be read.
 */
export type Rejection = 'unknown_user' | 'email_missing' | 'email_taken' | 'invalid_claim';

export type OidcSignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'rejected'; reason: Rejection; details?: unknown };

/** @param beforeCommit called immediately before the commit; an error that it throws rolls the sign-in back */
export type OidcSignIn = (
  user: ProviderUser,
  client: SessionClient,
  beforeCommit: () => void,
) => Promise<OidcSignInOutcome>;

export interface OidcSignInDependencies {
  prisma: PrismaClient;
  secrets: SecretBox;
  sessions: Pick<ConsoleSessions, 'openWithin' | 'deleteEnded'>;
  settings: OidcSettings;
  /** Time for which an answer of the provider is valid. */
  checkMs: number;
  /** Time for which a sign-in is valid if the provider issues no refresh token. */
  maxHours: number;
}

/**
 * Opens a session for a user whom the provider authenticated. Users are matched by issuer and subject only: a user who
 * controls an e-mail address at the provider must not get the user who has it here.
 */
export function createOidcSignIn(deps: OidcSignInDependencies): OidcSignIn {
  const { prisma, secrets, sessions, settings, checkMs, maxHours } = deps;

  const signIn: OidcSignIn = async (user, client, beforeCommit) => {
    const { claimAccounts } = settings;
    const claim = claimAccounts === null ? null : await readAccountsClaim(prisma, claimAccounts, user.claims);
    if (claim?.problems) return { kind: 'rejected', reason: 'invalid_claim', details: claim.problems };
    const newUser = await findNewUser(deps, user);
    if (typeof newUser === 'string') return { kind: 'rejected', reason: newUser };
    await sessions.deleteEnded();
    const ciphertext = user.refreshToken === null ? null : secrets.encrypt(user.refreshToken);
    const validSeconds = ciphertext === null ? maxHours * 3_600 : checkMs / 1_000;
    const actor = { kind: 'service', address: client.clientAddress } as const;
    const sessionId = await inActorTransaction(prisma, actor, async (transaction) => {
      const identity =
        newUser === null
          ? await findIdentity(transaction, user)
          : await createIdentity(transaction, secrets, user, newUser);
      await recordSignIn(transaction, { id: identity.id, sid: user.sid, ciphertext, validSeconds });
      if (claim) await updateMemberships(transaction, identity.userId, claim.memberships);
      const session = { id: identity.userId, oidcSid: user.sid };
      const id = await sessions.openWithin(transaction, session, client);
      beforeCommit();
      return id;
    });
    return { kind: 'signed_in', sessionId };
  };

  // Concurrent first sign-ins: one creates the user, and the other one finds it at its second attempt. A user may also be
  // unlinked meanwhile.
  return (...parameters) =>
    signIn(...parameters).catch((error: unknown) => {
      if (isRejection(error, 'P2002', 'P2025')) return signIn(...parameters);
      throw error;
    });
}

interface NewUser {
  email: string;
  name: string;
}

const TEXT_CHARACTERS_MAX = 255;
/** Values of `email_verified`; some providers send text only. */
const VERIFIED: readonly unknown[] = [true, 'true'];

/** Returns null if the user exists, and a rejection if the user cannot be created. */
async function findNewUser(
  { prisma, settings }: OidcSignInDependencies,
  { issuer, subject, claims }: ProviderUser,
): Promise<NewUser | Rejection | null> {
  const where = { issuer_subject: { issuer, subject } };
  if (await prisma.oidcIdentity.findUnique({ where, select: { id: true } })) return null;
  if (!settings.createUsers) return 'unknown_user';
  const email = textOf(claims.email)?.toLowerCase() ?? null;
  // Notifications of accounts go to the address, and operators add members by it.
  if (email === null || !VERIFIED.includes(claims.email_verified)) return 'email_missing';
  if (await prisma.user.findUnique({ where: { email }, select: { id: true } })) return 'email_taken';
  return { email, name: textOf(claims.name) ?? email };
}

interface IdentityKey {
  id: bigint;
  userId: bigint;
}

const IDENTITY_KEY = { id: true, userId: true } as const;

async function findIdentity(
  transaction: Prisma.TransactionClient,
  { issuer, subject }: ProviderUser,
): Promise<IdentityKey> {
  const where = { issuer_subject: { issuer, subject } };
  return await transaction.oidcIdentity.findUniqueOrThrow({ where, select: IDENTITY_KEY });
}

async function createIdentity(
  transaction: Prisma.TransactionClient,
  secrets: SecretBox,
  { issuer, subject }: ProviderUser,
  { email, name }: NewUser,
): Promise<IdentityKey> {
  const apiKey = createCredential('user');
  const user = await transaction.user.create({
    data: { email, name, apiKeyHash: hashCredential(apiKey), apiKeyCiphertext: secrets.encrypt(apiKey) },
  });
  return await transaction.oidcIdentity.create({
    data: { userId: user.id, issuer, subject, checkDueAt: new Date() },
    select: IDENTITY_KEY,
  });
}

/** Returns a claim that is usable text, without the characters that PostgreSQL or JSON rejects. */
function textOf(claim: unknown): string | null {
  if (typeof claim !== 'string' || claim.trim() === '' || hasInvalidText(claim)) return null;
  return isLongerThan(claim, TEXT_CHARACTERS_MAX) ? null : claim.trim();
}
