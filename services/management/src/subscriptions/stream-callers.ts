// SQL by hand: checks the callers of all open streams each second, with three kinds of credentials in one statement.
import { DEPLOYMENTS, PLANS, webhooksUnavailableReason } from '@runhook/contract';
import {
  column,
  type Pool,
  queryRows,
  type UnnestColumns,
  unnestParameterCount,
  unnestSql,
  unnestValues,
} from '@runhook/database';
import { withinDeadline } from '@runhook/runtime';
import type { Caller } from '../identity/principals.ts';

const CHECK_INTERVAL_MS = 1_000;
/** Deadline of one check, so that a query that hangs does not delay the next one. */
const CHECK_TIMEOUT_MS = 5_000;
/** Streams end when their callers could not be checked for this time. */
const UNCHECKED_MAX_MS = 10_000;

/** The caller of a stream and the account that it reads. Equal texts stand for equal permissions. */
interface StreamCaller {
  kind: 'user_key' | 'token' | 'session';
  /** Hash of the key, token or session id, in hexadecimal. */
  hash: string;
  /** Null for a token. */
  userId: number | null;
  accountId: number;
}

const CALLER_COLUMNS = {
  kind: ['text', ({ kind }) => kind],
  hash: ['text', ({ hash }) => hash],
  user_id: ['bigint', ({ userId }) => userId],
  account_id: ['bigint', ({ accountId }) => accountId],
} satisfies UnnestColumns<StreamCaller>;

const FIRST_TIME = unnestParameterCount(CALLER_COLUMNS) + 1;

const VALID_COLUMNS = {
  ordinality: column.digits,
  plan: column.oneOf(PLANS),
  deployment: column.oneOf(DEPLOYMENTS),
  is_check_due: column.flag,
};

/**
 * Selects the callers whose credential is valid and belongs to the account, and whose access has not ended at the identity
 * provider, with whether it must be checked there. Sessions use the clock of this process.
 */
const SELECT_VALID_CALLERS = `
  SELECT c.ordinality, a.plan, a.deployment, coalesce(i.check_due_at <= now(), false) AS is_check_due
  FROM ${unnestSql(CALLER_COLUMNS, 1, 'c', 'ordinality')}
  JOIN accounts a ON a.id = c.account_id
  LEFT JOIN oidc_identities i ON i.user_id = c.user_id
  WHERE i.ended_at IS NULL AND CASE c.kind
    WHEN 'token' THEN EXISTS (
      SELECT FROM service_tokens t
      WHERE t.token_hash = decode(c.hash, 'hex') AND t.account_id = c.account_id
        AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()))
    WHEN 'user_key' THEN EXISTS (
      SELECT FROM users u
      JOIN memberships m ON m.user_id = u.id AND m.account_id = c.account_id
      WHERE u.api_key_hash = decode(c.hash, 'hex'))
    ELSE EXISTS (
      SELECT FROM console_sessions s
      JOIN memberships m ON m.user_id = s.user_id AND m.account_id = c.account_id
      WHERE s.id_hash = decode(c.hash, 'hex')
        AND s.expires_at > $${FIRST_TIME}::timestamptz AND s.last_used_at > $${FIRST_TIME + 1}::timestamptz)
  END`;

export interface StreamCallersOptions {
  /** The primary: a replica has revocations late. */
  pool: Pool;
  /** Time after which an unused session has ended. */
  sessionIdleMinutes: number;
  /** Checks at the identity provider whether a user still has access, as a request of the user would. */
  hasAccess: (userId: number) => Promise<boolean>;
}

/**
 * Ends streams whose caller may no longer read the account's webhooks: the credential was revoked, rotated or has
 * expired, the membership was removed, the identity provider has ended the access, or the account has lost webhooks. One
 * query per second checks all open streams of the process; without streams there is none.
 */
export class StreamCallers {
  readonly #options: StreamCallersOptions;
  /** Functions that end the streams, by caller. */
  readonly #streams = new Map<string, { caller: StreamCaller; ends: Set<() => void> }>();
  #timer: NodeJS.Timeout | undefined;
  #checkedAtMs = 0;

  constructor(options: StreamCallersOptions) {
    this.#options = options;
  }

  /** Calls `end` when the caller loses access. The caller must call the returned function when the stream ends. */
  watch(caller: Pick<Caller, 'principal' | 'credential'>, accountId: number, end: () => void): () => void {
    const streamCaller = streamCallerOf(caller, accountId);
    const key = Object.values(streamCaller).join(' ');
    const stream = this.#streams.get(key) ?? { caller: streamCaller, ends: new Set() };
    this.#streams.set(key, stream);
    stream.ends.add(end);
    if (this.#timer === undefined) {
      this.#checkedAtMs = performance.now();
      this.#schedule();
    }
    return () => {
      stream.ends.delete(end);
      if (stream.ends.size === 0 && this.#streams.get(key) === stream) this.#streams.delete(key);
    };
  }

  #schedule(): void {
    this.#timer = setTimeout(() => void this.#check(), CHECK_INTERVAL_MS);
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const streams = [...this.#streams.values()];
    if (streams.length === 0) {
      this.#timer = undefined;
      return;
    }
    const startedAtMs = performance.now();
    try {
      const valid = await withinDeadline(CHECK_TIMEOUT_MS, () => this.#findValid(streams));
      this.#checkedAtMs = startedAtMs;
      for (const [index, { caller, ends }] of streams.entries()) {
        const found = valid.get(index);
        if (found === undefined) endAll(ends);
        else if (found.isCheckDue && caller.userId !== null) void this.#checkAccess(caller.userId, ends);
      }
    } catch {
      // The next check follows in a second. The health checks report an unavailable database.
      if (performance.now() - this.#checkedAtMs > UNCHECKED_MAX_MS)
        for (const { ends } of streams) endAll(ends);
    }
    this.#schedule();
  }

  /** Ends the streams unless the identity provider confirms the user; concurrent checks of one user are one request. */
  async #checkAccess(userId: number, ends: ReadonlySet<() => void>): Promise<void> {
    const hasAccess = await this.#options.hasAccess(userId).catch(() => false);
    if (!hasAccess) endAll(ends);
  }

  /** Returns the valid callers by their index. */
  async #findValid(
    streams: readonly { caller: StreamCaller }[],
  ): Promise<Map<number, { isCheckDue: boolean }>> {
    const { pool, sessionIdleMinutes } = this.#options;
    const nowMs = Date.now();
    const rows = await queryRows(pool, VALID_COLUMNS, SELECT_VALID_CALLERS, [
      ...unnestValues(
        CALLER_COLUMNS,
        streams.map(({ caller }) => caller),
      ),
      new Date(nowMs),
      new Date(nowMs - sessionIdleMinutes * 60_000),
    ]);
    const validRows = rows.filter((account) => webhooksUnavailableReason(account) === null);
    return new Map(
      validRows.map(({ ordinality, is_check_due: isCheckDue }) => [Number(ordinality) - 1, { isCheckDue }]),
    );
  }
}

function endAll(ends: ReadonlySet<() => void>): void {
  for (const end of [...ends]) end();
}

function streamCallerOf(
  { principal, credential }: Pick<Caller, 'principal' | 'credential'>,
  accountId: number,
): StreamCaller {
  const isKey = credential.kind === 'key';
  const hash = Buffer.from(isKey ? credential.hash : credential.idHash).toString('hex');
  const userId = principal.kind === 'user' ? principal.userId : null;
  const keyKind = userId === null ? 'token' : 'user_key';
  return { kind: isKey ? keyKind : 'session', hash, userId, accountId };
}
