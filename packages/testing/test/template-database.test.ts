import { expect, test } from '@jest/globals';
import { Client } from 'pg';
import { createTestDatabase } from '../src/index.ts';

test('each test has a separate migrated database', async () => {
  const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  expect(one.url).not.toBe(other.url);
  expect(await count(one.url, '_prisma_migrations')).toBeGreaterThan(0);
  await query(one.url, 'CREATE TABLE only_here ()');
  await expect(count(other.url, 'only_here')).rejects.toMatchObject({ code: '42P01' });
  await Promise.all([one.drop(), other.drop()]);
});

test('drop() ends remaining connections and may be repeated', async () => {
  const database = await createTestDatabase();
  const client = new Client({ connectionString: database.url });
  const connectionClosed = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  await database.drop();
  await connectionClosed;
  await database.drop();
  await expect(query(database.url, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' });
});

async function count(url: string, table: string): Promise<number> {
  const [row] = await query(url, `SELECT count(*)::int AS count FROM ${table}`);
  return (row as { count: number }).count;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
