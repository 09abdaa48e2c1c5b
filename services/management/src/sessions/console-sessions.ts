import { createHash, randomBytes } from 'node:crypto';
import { type Database, runStatement } from '@runhook/database';
import {
  type Caller,
  USER_COLUMNS,
  USER_MEMBERSHIPS,
  type UserRow,
  userPrincipal,
} from '../identity/principals.ts';

/** Sessions of the console, shared by all processes. A session ends on sign-out, when idle, and at its last hour. */
export interface ConsoleSessions {
  /**
   * Answers the session's id; only its hash is stored. Null when the password is no longer the one that was checked:
   * a reset ends the user's sessions, and must not be outrun by a sign-in with the old one.
   */
  open(user: { id: number; passwordHash: string }): Promise<string | null>;
  /** The user behind the cookie's text, or null when there is no such session any more. Counts as use. */
  find(sessionId: string): Promise<Caller | null>;
  close(idHash: Uint8Array): Promise<void>;
}

// Who signs in clears away what has ended, of anybody. Two at once must not wait for each other.
const OPEN = `
  WITH ended AS (
    DELETE FROM console_sessions WHERE id_hash IN (
      SELECT id_hash FROM console_sessions
      WHERE expires_at <= now() OR last_used_at <= now() - make_interval(mins => $3)
      LIMIT 1000 FOR UPDATE SKIP LOCKED))
  INSERT INTO console_sessions (id_hash, user_id, expires_at)
  SELECT $1, u.id, now() + make_interval(hours => $4)
  FROM (SELECT id FROM users WHERE id = $2 AND password_hash = $5 FOR SHARE) u
  RETURNING user_id`;

const FIND = `
  SELECT ${USER_COLUMNS}, u.api_key_hash, s.expires_at, s.last_used_at <= now() - interval '1 minute' AS used_unseen
  FROM console_sessions s JOIN users u ON u.id = s.user_id ${USER_MEMBERSHIPS}
  WHERE s.id_hash = $1 AND s.expires_at > now() AND s.last_used_at > now() - make_interval(mins => $2)
  ORDER BY a.id`;

// The condition lets one of many requests at once write, and the others find nothing to do.
const USED = `
  UPDATE console_sessions SET last_used_at = now()
  WHERE id_hash = $1 AND last_used_at <= now() - interval '1 minute'`;

type SessionRow = UserRow & { api_key_hash: Uint8Array; expires_at: Date; used_unseen: boolean };

export function createConsoleSessions(options: {
  pool: Database['pool'];
  idleMinutes: number;
  maxHours: number;
}): ConsoleSessions {
  const { pool, idleMinutes, maxHours } = options;
  return {
    async open({ id, passwordHash }) {
      const sessionId = createSessionId();
      const values = [hashSessionId(sessionId), id, idleMinutes, maxHours, passwordHash];
      const opened = await runStatement(pool, OPEN, values);
      return opened.length > 0 ? sessionId : null;
    },
    async find(sessionId) {
      const idHash = hashSessionId(sessionId);
      if (idHash === null) return null;
      const rows = await runStatement<SessionRow>(pool, FIND, [idHash, idleMinutes], 'session_by_id');
      const [row] = rows;
      if (!row) return null;
      if (row.used_unseen) await runStatement(pool, USED, [idHash]);
      return {
        principal: userPrincipal(row.user_id, rows),
        credential: { kind: 'session', idHash, expiresAt: row.expires_at, apiKeyHash: row.api_key_hash },
      };
    },
    async close(idHash) {
      await runStatement(pool, 'DELETE FROM console_sessions WHERE id_hash = $1', [idHash]);
    },
  };
}

const BYTES = 32;
const PATTERN = /^[\w-]{43}$/;

/** 256 random bits in base64url: what the browser's cookie holds. */
export function createSessionId(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** What the database holds; null when the text cannot be an id. 256 random bits need no slow hash. */
export function hashSessionId(text: string): Uint8Array<ArrayBuffer> | null {
  return PATTERN.test(text) ? new Uint8Array(createHash('sha256').update(text).digest()) : null;
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
