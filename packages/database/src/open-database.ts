import pg from 'pg';
import { DatabaseUnreachableError, runStatement } from './statements.ts';
import { DISABLE_JIT } from './with-client.ts';

export type Pool = pg.Pool;
export type Transaction = pg.PoolClient;

/** A statement, and its name where a connection prepares it once. */
export interface Statement {
  text: string;
  values: unknown[];
  name?: string;
  /** How long its answer is waited for, in place of the pool's time, in ms. */
  query_timeout?: number;
}

/** Runs statements: a pool, a transaction, or a router of reads between the primary and a replica. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<{ rows: Row[] }>;
}

/** The database for SQL by hand; for Prisma Client too, see `openPrismaDatabase`. `close` waits for queries in flight. */
export interface Database {
  pool: Pool;
  close(): Promise<void>;
}

/** A host that vanished without closing its sockets looks like a slow query; nothing of ours takes this long. */
export const QUERY_TIMEOUT_MS = 20_000;
export const CONNECT_TIMEOUT_MS = 3_000;
/**
 * The server gives up before the client does: otherwise each statement that nobody waits for any more would go on, and
 * keep its connection and its locks, while the next try begins beside it.
 */
const STATEMENT_TIMEOUT_MS = QUERY_TIMEOUT_MS - 2_000;
/** What holds a lock of ours for this long is a migration or somebody's hand; a pool has ten connections to wait on. */
const LOCK_TIMEOUT_MS = 5_000;

function sessionOf({ statementTimeoutMs = STATEMENT_TIMEOUT_MS }: DatabaseOptions): string {
  const lockTimeoutMs = Math.min(LOCK_TIMEOUT_MS, statementTimeoutMs);
  const timeouts = `SET statement_timeout = ${statementTimeoutMs}; SET lock_timeout = ${lockTimeoutMs}`;
  return `SET TIME ZONE 'UTC'; ${DISABLE_JIT}; ${timeouts}`;
}

export interface DatabaseOptions {
  url: string;
  /** Connections at most; 10 when omitted. */
  connectionsMax?: number;
  /** How long a query waits for a connection before the database counts as unavailable; 3 s when omitted. */
  connectTimeoutMs?: number | undefined;
  /** How long a statement may take on the server; 18 s when omitted. */
  statementTimeoutMs?: number;
  /** How long an answer is waited for; 20 s when omitted. */
  queryTimeoutMs?: number;
  /** Told of connections that break while idle. They are replaced by themselves. */
  onConnectionError?: (error: Error) => void;
}

/** Opens nothing yet: the first query connects. Dates come back as text, `YYYY-MM-DD`; bigint as text, as in pg. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    keepAlive: true,
    query_timeout: options.queryTimeoutMs ?? QUERY_TIMEOUT_MS,
    onConnect: (client) => setUp(client, options),
  });
  pool.on('error', (error) => options.onConnectionError?.(error));
  return {
    pool,
    close: async () => {
      if (!pool.ended) await pool.end();
    },
  };
}

/**
 * Awaited by the pool before it hands the connection out. By statements, since PgBouncer refuses them as parameters.
 * Prisma's adapter writes and reads times without their zone and means UTC, whatever the server's zone is.
 */
async function setUp(client: pg.ClientBase, options: DatabaseOptions): Promise<void> {
  await client.query(sessionOf(options));
}

/**
 * A host that vanishes leaves its transactions open until the server's TCP notices, in hours. What it locked, a run or
 * an upkeep's turn, must be free sooner. Longer than any wait of ours within a transaction.
 */
export const TRANSACTION_IDLE_MAX_MS = 30_000;
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_IDLE_MAX_MS}`;

/**
 * Runs `work` on one connection between BEGIN and COMMIT, rolled back when it throws. Throws what `work` threw, or
 * `DatabaseUnreachableError`; after that one the transaction may have been committed or not.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const client = await connect(pool);
  let lost: Error | undefined;
  // Without a listener, a connection that breaks while it is checked out ends the process.
  const onLost = (error: Error) => {
    lost = error;
  };
  client.on('error', onLost);
  try {
    await runStatement(client, BEGIN, []);
    const result = await work(client);
    await runStatement(client, 'COMMIT', []);
    return result;
  } catch (error) {
    // What did not answer is not asked once more: closing the connection rolls back as well.
    if (error instanceof DatabaseUnreachableError) lost = error;
    else await client.query('ROLLBACK').catch(onLost);
    throw error;
  } finally {
    client.off('error', onLost);
    client.release(lost);
  }
}

async function connect(pool: Pool): Promise<Transaction> {
  try {
    return await pool.connect();
  } catch (error) {
    throw new DatabaseUnreachableError('The database gave no connection.', { cause: error });
  }
}
