import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

const SERVER_TIME = `SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;

/** Returns the time of the server, not of the transaction, in milliseconds since the epoch. */
export async function readServerTimeMs(database: Queryable): Promise<number> {
  const [row] = await runStatement<{ ms: number }>(database, SERVER_TIME, []);
  return Number(row?.ms);
}
