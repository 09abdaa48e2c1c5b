import { createHash, randomBytes } from 'node:crypto';
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { inTransactionOf } from '../audit/actor.ts';
import { type Caller, userPrincipal } from '../identity/principals.ts';

/** Sessions of the console, shared by all processes. A session ends on sign-out, when idle, and at its last hour. */
export interface ConsoleSessions {
  /**
   * Answers the session's id; only its hash is stored. Null when the password is no longer the one that was checked:
   * a reset ends the user's sessions, and must not be outrun by a sign-in with the old one.
   * @param beforeCommit what it throws leaves no session
   */
  open(
    user: { id: number; passwordHash: string; clientAddress?: string },
    beforeCommit: () => void,
  ): Promise<string | null>;
  /** The user behind the cookie's text, or null when there is no such session any more. Counts as use. */
  find(sessionId: string): Promise<Caller | null>;
  /** @param beforeCommit what it throws leaves the session */
  close(idHash: Uint8Array<ArrayBuffer>, beforeCommit: () => void): Promise<void>;
}

export function createConsoleSessions(options: {
  prisma: PrismaClient;
  idleMinutes: number;
  maxHours: number;
}): ConsoleSessions {
  const { prisma, idleMinutes, maxHours } = options;
  const idleMs = idleMinutes * MINUTE_MS;
  return {
    async open({ id, passwordHash, clientAddress: address }, beforeCommit) {
      await clearEnded(prisma, idleMs);
      const sessionId = createSessionId();
      const session = {
        idHash: hashOf(sessionId),
        userId: BigInt(id),
        expiresAt: new Date(Date.now() + maxHours * HOUR_MS),
      };
      const actor = { kind: 'user', id, ...(address !== undefined && { address }) } as const;
      const isOpen = await inTransactionOf(prisma, actor, async (transaction) => {
        // Locks the user's row, so that a reset waits for the session and then ends it, or this one waits for the reset
        // and no longer finds the password.
        const user = { id: session.userId, passwordHash };
        const { count } = await transaction.user.updateMany({ where: user, data: { passwordHash } });
        if (count > 0) await transaction.consoleSession.create({ data: session });
        beforeCommit();
        return count > 0;
      });
      return isOpen ? sessionId : null;
    },
    async find(sessionId) {
      const idHash = hashSessionId(sessionId);
      if (idHash === null) return null;
      const session = await prisma.consoleSession.findUnique({ where: { idHash }, select: WITH_USER });
      const now = Date.now();
      if (!session || hasEnded(session, now, idleMs)) return null;
      if (now - session.lastUsedAt.getTime() >= USE_SEEN_MS) await use(prisma, idHash, now);
      const { user, expiresAt } = session;
      return {
        principal: userPrincipal(user.id, user.memberships),
        credential: { kind: 'session', idHash, expiresAt, apiKeyHash: user.apiKeyHash },
        version: null,
      };
    },
    async close(idHash, beforeCommit) {
      await inPrismaTransaction(prisma, async (transaction) => {
        await transaction.consoleSession.deleteMany({ where: { idHash } });
        beforeCommit();
      });
    },
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A use is written down at most so often. */
const USE_SEEN_MS = MINUTE_MS;

const WITH_USER = {
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

function hasEnded(
  { expiresAt, lastUsedAt }: { expiresAt: Date; lastUsedAt: Date },
  now: number,
  idleMs: number,
): boolean {
  return expiresAt.getTime() <= now || lastUsedAt.getTime() <= now - idleMs;
}

/** The condition lets one of many requests at once write, and the others find nothing to do. */
async function use(prisma: PrismaClient, idHash: Uint8Array<ArrayBuffer>, now: number): Promise<void> {
  await prisma.consoleSession.updateMany({
    where: { idHash, lastUsedAt: { lte: new Date(now - USE_SEEN_MS) } },
    data: { lastUsedAt: new Date(now) },
  });
}

/** More than one sign-in can leave behind, so that what has ended becomes less. */
const CLEARED_MAX = 20;

/**
 * Who signs in clears away some of what has ended, of anybody. One row a statement: who holds no lock while it waits for
 * another is in no deadlock, with a second sign-in or with a reset.
 */
async function clearEnded(prisma: PrismaClient, idleMs: number): Promise<void> {
  const now = Date.now();
  const isEnded = {
    OR: [{ expiresAt: { lte: new Date(now) } }, { lastUsedAt: { lte: new Date(now - idleMs) } }],
  };
  const ended = await prisma.consoleSession.findMany({
    where: isEnded,
    select: { idHash: true },
    take: CLEARED_MAX,
  });
  for (const { idHash } of ended) await prisma.consoleSession.deleteMany({ where: { idHash, ...isEnded } });
}

const BYTES = 32;
const PATTERN = /^[\w-]{43}$/;

/** 256 random bits in base64url: what the browser's cookie holds. */
function createSessionId(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** What the database holds; null when the text cannot be an id. 256 random bits need no slow hash. */
export function hashSessionId(text: string): Uint8Array<ArrayBuffer> | null {
  return PATTERN.test(text) ? hashOf(text) : null;
}

function hashOf(sessionId: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(sessionId).digest());
}

export const SESSION_COOKIE = 'runhook_session';

/**
 * The `Set-Cookie` of a console session. Strict, not Lax: only the console's own scripts need it, whose requests come
 * from its own pages; a link from elsewhere opens those pages without it. It ends with the browser, or with the
 * session on the server. A plain http installation gets it without `Secure`, or no browser would send it back.
 * @param secure whether the request came over https
 */
export function sessionCookie(sessionId: string, secure: boolean): string {
  return `${SESSION_COOKIE}=${sessionId}; ${attributes(secure)}`;
}

/** The `Set-Cookie` that makes the browser forget. */
export function endedSessionCookie(secure: boolean): string {
  return `${SESSION_COOKIE}=; Max-Age=0; ${attributes(secure)}`;
}

/** @param header the request's `Cookie` */
export function sessionIdOf(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const [name, value] = pair.trim().split('=');
    if (name === SESSION_COOKIE && value) return value;
  }
  return null;
}

function attributes(secure: boolean): string {
  return `Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}
