import type pg from 'pg';
import { DatabaseUnreachableError, runStatement } from './database-unavailable.ts';

export type Pool = pg.Pool;
export type Queryable = pg.Pool | pg.PoolClient;
export type Transaction = pg.PoolClient;

/**
 * A host that vanishes leaves its transactions open until the server's TCP notices, in hours. What it locked, a run or
 * the relay's turn, must be free sooner. Longer than any wait of ours within a transaction.
 */
const BEGIN = 'BEGIN; SET LOCAL idle_in_transaction_session_timeout = 30000';

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
