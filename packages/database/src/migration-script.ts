import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

/**
 * The first line of a migration that PostgreSQL does not take within a transaction, as CREATE INDEX CONCURRENTLY: its
 * statements, each of which ends with its line, run one by one. It must be fit to be begun again where it broke off:
 * an index that was not finished is there, and not valid, so DROP INDEX CONCURRENTLY IF EXISTS goes first.
 */
const ONE_BY_ONE = '-- One by one, outside a transaction.';

export interface RunScriptOptions {
  /** How long everybody may have to wait behind the migration while it waits for a lock; 2 s when omitted. */
  lockTimeoutMs?: number;
  /** How often a lock is waited for; 60 when omitted, which takes about ten minutes. */
  lockTries?: number;
  /** Told of each try in vain; the next one waits for it. */
  onLockWait?: (error: Error) => void | Promise<void>;
}

/** A script that did not run. Its message is the database's own words. */
export class ScriptError extends Error {
  readonly script: string;
  /** Nothing of it is left. */
  readonly isUndone: boolean;

  constructor(script: string, sent: string, cause: pg.DatabaseError) {
    super(wordsOf(sent, cause), { cause });
    this.script = script;
    this.isUndone = sent === script;
  }
}

const LOCK_TIMEOUT_MS = 2_000;
const LOCK_TRIES = 60;
const LOCK_PAUSE_MAX_MS = 8_000;
/** The lock did not come, or waiting for it went in a circle. */
const NOT_NOW = new Set(['55P03', '40P01']);

/**
 * Runs a migration: sent whole it is one implicit transaction, so that it applies entirely or not at all. Nothing limits
 * how long it takes; but what waits for a lock has everybody behind it who comes later, so it gives way and tries again.
 * @throws ScriptError
 */
export async function runScript(
  pool: pg.Pool,
  script: string,
  options: RunScriptOptions = {},
): Promise<void> {
  // The pool's own `query` ends a connection that reported an error, and the engine's lock with it.
  const client = await pool.connect();
  try {
    await (script.startsWith(ONE_BY_ONE) ? runOneByOne(client, script) : runWhole(client, script, options));
  } finally {
    // The engine's own statements follow on the same connection: it waits for its lock as long as it takes.
    await client.query('RESET lock_timeout').catch(() => undefined);
    client.release();
  }
}

async function runWhole(
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
      if (!NOT_NOW.has(error.code ?? '') || tries >= lockTries) throw new ScriptError(script, script, error);
      await onLockWait?.(error);
    }
    await wait(Math.min(4 * lockTimeoutMs, LOCK_PAUSE_MAX_MS));
  }
}

/** Waits for locks as long as it takes: what these statements wait for, nobody waits behind. */
async function runOneByOne(client: pg.PoolClient, script: string): Promise<void> {
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

function wordsOf(sent: string, error: pg.DatabaseError): string {
  const { message, code, detail, hint, position, where } = error;
  const line = position === undefined ? '' : `, line ${sent.slice(0, Number(position)).split('\n').length}`;
  const more = [detail && `Detail: ${detail}`, hint && `Hint: ${hint}`, where && `Where: ${where}`];
  return [`${message} (${code}${line})`, ...more.filter(Boolean)].join('\n');
}
