import pg from 'pg';
import { type DatabaseOptions, openDatabase, type Queryable } from './open-database.ts';
import { DatabaseUnreachableError, runStatement } from './statements.ts';

const NAME = 'runhook-prepared-statements';
/** The order in which the two connections run the statement; irregular, for a pooler that hands out its server connections in turn. */
const CLIENTS_IN_ORDER = [0, 1, 1, 0, 0, 1, 0, 1, 1];

/**
 * Checks that a statement which was prepared on a connection stays there: runs one named statement over two connections,
 * several times. A pooler in transaction mode that does not track prepared statements gives both the same connection of
 * the server, and PostgreSQL refuses to prepare the name again (42P05), or does not know it (26000).
 * @throws the error of PostgreSQL, for which `connectionProblem` says what to set, or DatabaseUnreachableError
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
    throw new DatabaseUnreachableError('The database gave no connection.', { cause: error });
  }
}
