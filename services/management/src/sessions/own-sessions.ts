import { secondsTimestamp } from '@runhook/contract';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type Actor, inActorTransaction } from '../audit/actor.ts';
import { type CallerEndpoint, type CallerRequest, requireUser } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { AccessDeniedError, NotFoundError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import type { Credential } from '../identity/principals.ts';
import { SESSION_COOKIE } from './console-sessions.ts';
import { cookieProtection, removedCookies } from './cookie-protection.ts';

const SESSIONS = '/api/v3/profile/sessions';
const MINUTE_MS = 60_000;
/** Public id of a session: the SHA-256 of the id in the cookie, from which the latter cannot be computed. */
const PUBLIC_ID = /^[0-9a-f]{64}$/;

/** A session of the caller. Times are ISO 8601 UTC in seconds with `Z`. */
export interface OwnSessionView {
  id: string;
  created_at: string;
  /** Up to a minute late. */
  last_used_at: string;
  /** Latest end of the session. */
  expires_at: string;
  /** Address at the sign-in; null for a session of an earlier release. */
  client_address: string | null;
  /** "Firefox on Linux", from the `User-Agent` at the sign-in; null if it names no known browser. */
  browser: string | null;
  is_current: boolean;
}

interface Dependencies {
  prisma: PrismaClient;
  idleMinutes: number;
  publicUrl: string | undefined;
}

/** A user with a console session, and the session. */
export interface SessionCaller {
  userId: number;
  session: Extract<Credential, { kind: 'session' }>;
  /** Author of the changes in the audit log. */
  actor: Actor;
}

/** Throws a 403 for a caller with a key, which cannot manage the sessions and the password of its user. */
export function requireSession({ principal, credential, clientAddress }: CallerRequest): SessionCaller {
  const { userId } = requireUser(principal);
  if (credential.kind !== 'session') throw new AccessDeniedError('A key is not signed in.');
  return { userId, session: credential, actor: { kind: 'user', id: userId, address: clientAddress } };
}

/** Lists the caller's sessions, and ends one or all of them (docs/contract.md#console-sessions). */
export function ownSessionsEndpoints(deps: Dependencies): CallerEndpoint[] {
  return [listEndpoint(deps), endAllEndpoint(deps), endOneEndpoint(deps)];
}

function listEndpoint({ prisma, idleMinutes }: Dependencies): CallerEndpoint {
  return {
    method: 'GET',
    path: SESSIONS,
    access: 'caller',
    async handle(request) {
      const { userId, session } = requireSession(request);
      const reader = new QueryReader(request.query);
      const page = reader.page();
      reader.check();
      const nowMs = Date.now();
      const where = {
        userId: BigInt(userId),
        expiresAt: { gt: new Date(nowMs) },
        lastUsedAt: { gt: new Date(nowMs - idleMinutes * MINUTE_MS) },
      };
      const [rows, totalCount] = await Promise.all([
        prisma.consoleSession.findMany({
          where,
          orderBy: [{ lastUsedAt: 'desc' }, { idHash: 'asc' }],
          take: page.limit,
          skip: page.offset,
        }),
        prisma.consoleSession.count({ where }),
      ]);
      const currentId = publicId(session.idHash);
      const data = rows.map((row) => sessionView(row, currentId));
      return { code: 200, data, extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

/** Signs the user out in every browser. */
function endAllEndpoint({ prisma, publicUrl }: Dependencies): CallerEndpoint {
  return {
    method: 'DELETE',
    path: SESSIONS,
    access: 'caller',
    async handle(request) {
      const { userId, actor } = requireSession(request);
      await endSessions(prisma, actor, { userId: BigInt(userId) }, request.beforeCommit);
      return signedOut(request, publicUrl);
    },
  };
}

function endOneEndpoint({ prisma, publicUrl }: Dependencies): CallerEndpoint {
  return {
    method: 'DELETE',
    path: `${SESSIONS}/:session_id`,
    access: 'caller',
    async handle(request) {
      const { userId, session, actor } = requireSession(request);
      const id = request.param('session_id');
      if (!PUBLIC_ID.test(id)) throw new NotFoundError();
      const where = { userId: BigInt(userId), idHash: new Uint8Array(Buffer.from(id, 'hex')) };
      const endedCount = await endSessions(prisma, actor, where, request.beforeCommit);
      if (endedCount === 0) throw new NotFoundError();
      return id === publicId(session.idHash)
        ? signedOut(request, publicUrl)
        : { code: 200, data: {}, isSuccess: true };
    },
  };
}

function signedOut({ secure }: CallerRequest, publicUrl: string | undefined) {
  const headers = { 'set-cookie': removedCookies(SESSION_COOKIE, cookieProtection(publicUrl, secure)) };
  return { code: 200, data: {}, isSuccess: true as const, headers };
}

async function endSessions(
  prisma: PrismaClient,
  actor: Actor,
  where: Prisma.ConsoleSessionWhereInput,
  beforeCommit: () => void,
): Promise<number> {
  return await inActorTransaction(prisma, actor, async (transaction) => {
    const { count } = await transaction.consoleSession.deleteMany({ where });
    beforeCommit();
    return count;
  });
}

function publicId(idHash: Uint8Array): string {
  return Buffer.from(idHash).toString('hex');
}

function sessionView(row: Prisma.ConsoleSessionModel, currentId: string): OwnSessionView {
  const id = publicId(row.idHash);
  return {
    id,
    created_at: secondsTimestamp(row.createdAt),
    last_used_at: secondsTimestamp(row.lastUsedAt),
    expires_at: secondsTimestamp(row.expiresAt),
    client_address: row.clientAddress,
    browser: row.browser,
    is_current: id === currentId,
  };
}
