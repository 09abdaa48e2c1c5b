import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from './generated/client.ts';

/**
 * One pool, two faces: Prisma for single rows, plain SQL for what moves in batches. `close` waits for queries in
 * flight.
 */
export interface Database {
  prisma: PrismaClient;
  pool: pg.Pool;
  close(): Promise<void>;
}

/** A host that vanished without closing its sockets looks like a slow query; nothing of ours takes this long. */
const QUERY_TIMEOUT_MS = 20_000;

export interface DatabaseOptions {
  url: string;
  /** Connections at most; 10 when omitted. */
  connectionsMax?: number;
  /** How long a query waits for a connection before the database counts as unavailable; 3 s when omitted. */
  connectTimeoutMs?: number;
  /**
   * Never to read a whole table where an index will do. For statements that are prepared once and run all day: a plan
   * that was made while a table was empty, as each day's partition is at midnight, is kept until the next ANALYZE, and
   * would read all of the day for each batch.
   */
  plansByIndex?: boolean;
  /** Told of connections that break while idle. They are replaced by themselves. */
  onConnectionError?: (error: Error) => void;
}

/** Opens nothing yet: the first query connects. Dates come back as text, `YYYY-MM-DD`; bigint as text, as in pg. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 3_000,
    keepAlive: true,
    query_timeout: QUERY_TIMEOUT_MS,
    ...(options.plansByIndex && { onConnect: avoidWholeTables }),
  });
  pool.on('error', (error) => options.onConnectionError?.(error));
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    prisma,
    pool,
    close: async () => {
      await prisma.$disconnect();
      if (!pool.ended) await pool.end();
    },
  };
}

/** Awaited by the pool before it hands the connection out. A statement, since PgBouncer refuses it as a parameter. */
async function avoidWholeTables(client: pg.ClientBase): Promise<void> {
  await client.query('SET enable_seqscan = off');
}
