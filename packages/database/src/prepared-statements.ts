import pg from 'pg';
import { type DatabaseOptions, openDatabase, type Queryable } from './open-database.ts';
import { DatabaseUnreachableError, runStatement } from './statements.ts';

const NAME = 'runhook-prepared-statements';
/** Order in which the two connections run the statement; irregular, because a pooler may rotate its connections. */
const CLIENTS_IN_ORDER = [0, 1, 1, 0, 0, 1, 0, 1, 1];

/**
 * Checks that a prepared statement stays available on its connection: runs one named statement over two connections,
 * several times. A pooler in transaction mode that does not track prepared statements assigns the same server
 * connection to both, and PostgreSQL rejects the name as duplicate (42P05) or unknown (26000).
 * @throws the error of PostgreSQL, for which `findConnectionProblem` has the remedy, or DatabaseUnreachableError
 */
export async function requirePreparedStatements(
  options: Pick<DatabaseOptions, 'url' | 'connectTimeoutMs'>,
): Promise<void> {
  const { pool, close } = openDatabase({ ...options, connectionsMax: 2 });
  const clients: pg.PoolClient[] = [];
  try {
    while (clients.length < 2) clients.push(await connect(pool));
    for (const index of CLIENTS_IN_ORDER)
      await runStatement(clients[index] as Queryable, 'SELECT 1', [], NAME);
  } finally {
    for (const client of clients) client.release(true);
    await close();
  }
}

async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    const client = await pool.connect();
    // Without a listener, a connection that breaks while it is checked out ends the process.
    client.on('error', () => undefined);
    return client;
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error;
    throw new DatabaseUnreachableError('The database accepted no connection.', { cause: error });
  }
}
