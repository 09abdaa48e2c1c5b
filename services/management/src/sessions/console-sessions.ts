import { createHash, randomBytes } from 'node:crypto';
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { inActorTransaction } from '../audit/actor.ts';
import { type Caller, userPrincipal } from '../identity/principals.ts';
import { describeBrowser } from './browser.ts';
import { type CookieProtection, cookieAttributes, cookieValues } from './cookie-protection.ts';

/**
 * Called as the last step of the transaction that opens a session; an error that it throws rolls the session back. It
 * makes the complete response, because a failure after the commit would be a 503 with an open session.
 */
export type BeforeSessionCommit = (transaction: Prisma.TransactionClient, caller: Caller) => Promise<void>;

/** The browser that signs in. */
export interface SessionClient {
  clientAddress: string;
  /** `User-Agent` header. */
  userAgent: string | undefined;
  /** `Cookie` header; the session in it is replaced. */
  cookie: string | undefined;
}

/**
 * Sessions of the console, shared by all processes. A session ends on sign-out, with a new password, when idle, and at
 * its maximum age.
 */
export interface ConsoleSessions {
  /**
   * Opens a session and returns its id, of which only the hash is stored. Returns null if the password has changed
   * since it was checked, because a reset must also end sessions that are being opened with the old password.
   */
  open(
    user: { id: number; passwordHash: string; clientAddress?: string; browser?: string | null },
    beforeCommit: BeforeSessionCommit,
  ): Promise<string | null>;
  /**
   * Opens a session within the caller's transaction, for a user whom the identity provider has authenticated, and
   * returns its id.
   * @param oidcSid session at the provider; null if it has no name
   */
  openWithin(
    transaction: Prisma.TransactionClient,
    user: { id: bigint; oidcSid: string | null },
    client: SessionClient,
  ): Promise<string>;
  /** Deletes some ended sessions of any user. */
  deleteEnded(): Promise<void>;
  /** Returns the user of the session, or null if it does not exist or has ended. Counts as use of the session. */
  find(sessionId: string): Promise<Caller | null>;
  /**
   * @param beforeCommit an error that it throws rolls the deletion back
   * @param signedOut user whose sign-out the audit log records; omitted for a session that another one replaces
   */
  close(
    idHash: Uint8Array<ArrayBuffer>,
    beforeCommit: () => void,
    signedOut?: { id: number; clientAddress: string },
  ): Promise<void>;
}

export function createConsoleSessions(options: {
  prisma: PrismaClient;
  idleMinutes: number;
  maxHours: number;
}): ConsoleSessions {
  const { prisma, idleMinutes, maxHours } = options;
  const idleMs = idleMinutes * MINUTE_MS;
  return {
    async open({ id, passwordHash, clientAddress: address, browser = null }, beforeCommit) {
      await deleteEndedSessions(prisma, idleMs);
      const sessionId = createSessionId();
      const session = {
        idHash: hashOf(sessionId),
        userId: BigInt(id),
        expiresAt: new Date(Date.now() + maxHours * HOUR_MS),
        clientAddress: address ?? null,
        browser,
      };
      const actor = { kind: 'user', id, ...(address !== undefined && { address }) } as const;
      const isOpen = await inActorTransaction(prisma, actor, async (transaction) => {
        // Locks the user's row. Either a reset waits for this session and then ends it, or this statement waits for the
        // reset and does not find the old password.
        const user = { id: session.userId, passwordHash };
        const { count } = await transaction.user.updateMany({ where: user, data: { passwordHash } });
        if (count === 0) return false;
        await transaction.consoleSession.create({ data: session });
        const caller = await findCaller(transaction, session.idHash, idleMs);
        if (caller === null) return false;
        await beforeCommit(transaction, caller);
        return true;
      });
      return isOpen ? sessionId : null;
    },
    async openWithin(transaction, { id, oidcSid }, { clientAddress, userAgent, cookie }) {
      await endReplacedSessions(transaction, cookie);
      const sessionId = createSessionId();
      const expiresAt = new Date(Date.now() + maxHours * HOUR_MS);
      const browser = describeBrowser(userAgent);
      await transaction.consoleSession.create({
        data: { idHash: hashOf(sessionId), userId: id, expiresAt, oidcSid, clientAddress, browser },
      });
      return sessionId;
    },
    deleteEnded: () => deleteEndedSessions(prisma, idleMs),
    async find(sessionId) {
      const idHash = hashSessionId(sessionId);
      if (idHash === null) return null;
      return await findCaller(prisma, idHash, idleMs);
    },
    async close(idHash, beforeCommit, signedOut) {
      const work = async (transaction: Prisma.TransactionClient) => {
        await transaction.consoleSession.deleteMany({ where: { idHash } });
        beforeCommit();
      };
      if (!signedOut) return await inPrismaTransaction(prisma, work);
      const { id, clientAddress: address } = signedOut;
      await inActorTransaction(prisma, { kind: 'user', id, address }, work);
    },
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Minimum interval between two updates of a session's last use. */
const USE_UPDATE_INTERVAL_MS = MINUTE_MS;

const SESSION_FIELDS = {
  expiresAt: true,
  lastUsedAt: true,
  user: {
    select: {
      id: true,
      apiKeyHash: true,
      memberships: {
        select: {
          license: true,
          permissionSets: true,
          account: { select: { id: true, identifier: true, plan: true, deployment: true } },
        },
        orderBy: { accountId: 'asc' },
      },
    },
  },
} satisfies Prisma.ConsoleSessionSelect;

async function findCaller(
  prisma: Prisma.TransactionClient,
  idHash: Uint8Array<ArrayBuffer>,
  idleMs: number,
): Promise<Caller | null> {
  const session = await prisma.consoleSession.findUnique({ where: { idHash }, select: SESSION_FIELDS });
  const now = Date.now();
  if (!session || hasEnded(session, now, idleMs)) return null;
  if (now - session.lastUsedAt.getTime() >= USE_UPDATE_INTERVAL_MS) await recordUse(prisma, idHash, now);
  const { user, expiresAt } = session;
  return {
    principal: userPrincipal(user.id, user.memberships),
    credential: { kind: 'session', idHash, expiresAt, apiKeyHash: user.apiKeyHash },
    version: null,
  };
}

function hasEnded(
  { expiresAt, lastUsedAt }: { expiresAt: Date; lastUsedAt: Date },
  now: number,
  idleMs: number,
): boolean {
  return expiresAt.getTime() <= now || lastUsedAt.getTime() <= now - idleMs;
}

/** The condition lets one of many concurrent requests write; the others match no row. */
async function recordUse(
  prisma: Prisma.TransactionClient,
  idHash: Uint8Array<ArrayBuffer>,
  now: number,
): Promise<void> {
  await prisma.consoleSession.updateMany({
    where: { idHash, lastUsedAt: { lte: new Date(now - USE_UPDATE_INTERVAL_MS) } },
    data: { lastUsedAt: new Date(now) },
  });
}

/**
 * Number of ended sessions that a sign-in deletes at most: more than the one that it creates, so that their number
 * shrinks.
 */
const DELETED_MAX = 20;

/**
 * Deletes some ended sessions of any user, called at each sign-in. Each statement deletes one row, so no lock is held
 * while waiting for another, which prevents deadlocks with other sign-ins and with resets.
 */
async function deleteEndedSessions(prisma: PrismaClient, idleMs: number): Promise<void> {
  const now = Date.now();
  const endedCondition = {
    OR: [{ expiresAt: { lte: new Date(now) } }, { lastUsedAt: { lte: new Date(now - idleMs) } }],
  };
  const endedSessions = await prisma.consoleSession.findMany({
    where: endedCondition,
    select: { idHash: true },
    take: DELETED_MAX,
  });
  for (const { idHash } of endedSessions)
    await prisma.consoleSession.deleteMany({ where: { idHash, ...endedCondition } });
}

const SESSION_ID_BYTES = 32;
const SESSION_ID_PATTERN = /^[\w-]{43}$/;

/** Returns 256 random bits in base64url, the contents of the cookie. */
function createSessionId(): string {
  return randomBytes(SESSION_ID_BYTES).toString('base64url');
}

/** Returns the hash that the database stores; null if the text cannot be an id. 256 random bits need no slow hash. */
function hashSessionId(text: string): Uint8Array<ArrayBuffer> | null {
  return SESSION_ID_PATTERN.test(text) ? hashOf(text) : null;
}

function hashOf(sessionId: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(sessionId).digest());
}

export const SESSION_COOKIE = 'runhook_session';

/** Ends the sessions of the browser's earlier cookies: the new one replaces them, and no other browser has them. */
export async function endReplacedSessions(
  transaction: Prisma.TransactionClient,
  cookie: string | undefined,
): Promise<void> {
  for (const sessionId of cookieValues(cookie, SESSION_COOKIE)) {
    const idHash = hashSessionId(sessionId);
    if (idHash !== null) await transaction.consoleSession.deleteMany({ where: { idHash } });
  }
}

/** Returns the `Set-Cookie` of a console session. It ends with the browser or with the session on the server. */
export function sessionCookie(sessionId: string, protection: CookieProtection): string {
  return `${protection.prefix}${SESSION_COOKIE}=${sessionId}; ${cookieAttributes(protection)}`;
}

/** @param header `Cookie` header of the request */
export function sessionIdOf(header: string | undefined): string | null {
  return cookieValues(header, SESSION_COOKIE)[0] ?? null;
}
