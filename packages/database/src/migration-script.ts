import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

/**
 * First line of a migration that PostgreSQL does not accept within a transaction, such as CREATE INDEX CONCURRENTLY.
 * Its statements, each terminated at the end of a line, run one by one. It must be safe to rerun after an interruption:
 * an interrupted build leaves an invalid index, so DROP INDEX CONCURRENTLY IF EXISTS must come first.
 */
const STATEMENT_BY_STATEMENT = '-- One by one, outside a transaction.';

export interface RunScriptOptions {
  /** Timeout for a lock, during which other sessions queue behind the migration; 2 s when omitted. */
  lockTimeoutMs?: number;
  /** Number of attempts to get a lock; 60 when omitted, which takes about ten minutes. */
  lockTries?: number;
  /** Called after each attempt that got no lock and is retried; awaited before the next one. */
  onLockWait?: (error: Error) => void | Promise<void>;
}

/** A script failed. The message is the database's. */
export class ScriptError extends Error {
  readonly script: string;
  /** Whether the script was rolled back entirely. */
  readonly isRolledBack: boolean;

  constructor(script: string, sentText: string, cause: pg.DatabaseError) {
    super(formatError(sentText, cause), { cause });
    this.script = script;
    this.isRolledBack = sentText === script;
  }
}

const LOCK_TIMEOUT_MS = 2_000;
const LOCK_TRIES = 60;
const LOCK_PAUSE_MAX_MS = 8_000;
/** SQLSTATEs of a lock timeout and a deadlock. */
const RETRYABLE_SQLSTATES = new Set(['55P03', '40P01']);

/**
 * Runs a migration. A script sent in one call is one implicit transaction, so it applies entirely or not at all. Its
 * duration is not limited. A statement that waits for a lock blocks all later sessions, so it times out and is retried.
 * @throws ScriptError
 */
export async function runScript(
  pool: pg.Pool,
  script: string,
  options: RunScriptOptions = {},
): Promise<void> {
  // `pool.query` closes a connection that reported an error, which would release the engine's advisory lock.
  const client = await pool.connect();
  try {
    await (script.startsWith(STATEMENT_BY_STATEMENT)
      ? runStatementByStatement(client, script)
      : runInOneTransaction(client, script, options));
  } finally {
    // The engine continues on this connection, and its wait for the advisory lock has no timeout.
    await client.query('RESET lock_timeout').catch(() => undefined);
    client.release();
  }
}

async function runInOneTransaction(
  client: pg.PoolClient,
  script: string,
  { lockTimeoutMs = LOCK_TIMEOUT_MS, lockTries = LOCK_TRIES, onLockWait }: RunScriptOptions,
): Promise<void> {
  await client.query(`SET statement_timeout = 0; SET lock_timeout = ${lockTimeoutMs}`);
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query(script);
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      if (!RETRYABLE_SQLSTATES.has(error.code ?? '') || tries >= lockTries)
        throw new ScriptError(script, script, error);
      await onLockWait?.(error);
    }
    await wait(Math.min(4 * lockTimeoutMs, LOCK_PAUSE_MAX_MS));
  }
}

/** Waits for locks without a timeout, because these statements block no other session while they wait. */
async function runStatementByStatement(client: pg.PoolClient, script: string): Promise<void> {
  await client.query('SET statement_timeout = 0; SET lock_timeout = 0');
  for (const statement of script.split(/;[ \t]*$/m)) {
    if (statement.replace(/^\s*--.*$/gm, '').trim() === '') continue;
    try {
      await client.query(statement);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      throw new ScriptError(script, statement, error);
    }
  }
}

function formatError(sentText: string, error: pg.DatabaseError): string {
  const { message, code, detail, hint, position, where } = error;
  const line =
    position === undefined ? '' : `, line ${sentText.slice(0, Number(position)).split('\n').length}`;
  const details = [detail && `Detail: ${detail}`, hint && `Hint: ${hint}`, where && `Where: ${where}`];
  return [`${message} (${code}${line})`, ...details.filter(Boolean)].join('\n');
}
