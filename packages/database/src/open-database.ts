import pg from 'pg';
import { DatabaseUnreachableError, runStatement } from './statements.ts';
import { DISABLE_JIT } from './with-client.ts';

export type Pool = pg.Pool;
export type Transaction = pg.PoolClient;

/** A statement. One with a name is prepared once on each connection. */
export interface Statement {
  text: string;
  values: unknown[];
  name?: string;
  /** Timeout for the response in ms; replaces the pool's. */
  query_timeout?: number;
}

/** Runs statements: a pool, a transaction, or a router of reads between the primary and a replica. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<{ rows: Row[] }>;
}

/** The database for handwritten SQL; see `openPrismaDatabase` for Prisma Client. `close` waits for queries in flight. */
export interface Database {
  pool: Pool;
  close(): Promise<void>;
}

/** Limit for a response: a host that vanished without closing its sockets looks like a slow query. */
export const QUERY_TIMEOUT_MS = 20_000;
export const CONNECT_TIMEOUT_MS = 3_000;
/**
 * The server cancels a statement before the client gives up. Otherwise an abandoned statement would keep its connection
 * and locks while its retry runs.
 */
const STATEMENT_TIMEOUT_MS = QUERY_TIMEOUT_MS - 2_000;
/** A lock that is held this long belongs to a migration or a manual session; a pool has only ten connections. */
const LOCK_TIMEOUT_MS = 5_000;

function sessionStatements({ statementTimeoutMs = STATEMENT_TIMEOUT_MS }: DatabaseOptions): string {
  const lockTimeoutMs = Math.min(LOCK_TIMEOUT_MS, statementTimeoutMs);
  const timeouts = `SET statement_timeout = ${statementTimeoutMs}; SET lock_timeout = ${lockTimeoutMs}`;
  return `SET TIME ZONE 'UTC'; ${DISABLE_JIT}; ${timeouts}`;
}

export interface DatabaseOptions {
  url: string;
  /** Maximum number of connections; 10 when omitted. */
  connectionsMax?: number;
  /** Time that a query waits for a connection before the database counts as unavailable; 3 s when omitted. */
  connectTimeoutMs?: number | undefined;
  /** Timeout of a statement on the server; 18 s when omitted. */
  statementTimeoutMs?: number;
  /** Timeout for a response on the client; 20 s when omitted. */
  queryTimeoutMs?: number;
  /** Called with the error of a connection that breaks while idle. The pool replaces such connections automatically. */
  onConnectionError?: (error: Error) => void;
}

/** Opens no connection yet: the first query connects. Queries return dates (`YYYY-MM-DD`) and bigints as text. */
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
 * Configures a connection before the pool hands it out. Uses statements, since PgBouncer rejects these settings as
 * startup parameters. Prisma's adapter writes and reads timestamps without a time zone and assumes UTC.
 */
async function setUp(client: pg.ClientBase, options: DatabaseOptions): Promise<void> {
  await client.query(sessionStatements(options));
}

/**
 * Releases the locks of a host that vanished, such as those of a run or a maintenance task, long before the server's
 * TCP detects it after hours. Longer than any pause within a transaction of the services.
 */
export const TRANSACTION_IDLE_MAX_MS = 30_000;
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_IDLE_MAX_MS}`;

/**
 * Runs `work` on one connection between BEGIN and COMMIT, and rolls back when it throws.
 * @throws the error of `work`, or DatabaseUnreachableError, after which the transaction may or may not be committed
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const client = await connect(pool);
  let connectionError: Error | undefined;
  // Without a listener, a connection that breaks while it is checked out ends the process.
  const onLost = (error: Error) => {
    connectionError = error;
  };
  client.on('error', onLost);
  try {
    await runStatement(client, BEGIN, []);
    const result = await work(client);
    await runStatement(client, 'COMMIT', []);
    return result;
  } catch (error) {
    // A connection that did not respond is not queried again: closing it rolls back as well.
    if (error instanceof DatabaseUnreachableError) connectionError = error;
    else await client.query('ROLLBACK').catch(onLost);
    throw error;
  } finally {
    client.off('error', onLost);
    client.release(connectionError);
  }
}

async function connect(pool: Pool): Promise<Transaction> {
  try {
    return await pool.connect();
  } catch (error) {
    throw new DatabaseUnreachableError('The database accepted no connection.', { cause: error });
  }
}
