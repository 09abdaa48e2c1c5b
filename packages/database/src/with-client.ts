import pg from 'pg';

/** Statement for each new connection: JIT compilation takes longer than any statement of the services. */
export const DISABLE_JIT = 'SET jit = off';

/** Runs `work` on a connection without time limits, which is closed afterwards. */
export async function withClient<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(DISABLE_JIT);
    return await work(client);
  } finally {
    await client.end();
  }
}
