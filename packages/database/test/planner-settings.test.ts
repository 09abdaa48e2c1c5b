import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { createTestDatabase } from '@runhook/testing';

/** Settings that any file may change: the compilation of plans (JIT) does not affect the choice of a plan. */
const ALLOWED = ['jit'];

/** Settings of the planner that remain in the code, by file. */
const LEFT: Record<string, string[]> = {
  // Connections of the queue, whose statements are BullMQ's: bullmq-internals.test.ts shows that they need it (ADR 27).
  'packages/queue/src/backends/postgres.ts': ['enable_seqscan'],
};

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Folders of the product's code. packages/testing is not part of it: it explains statements with either kind of plan. */
const FOLDERS = ['packages', 'services']
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name, 'src')))
  .filter((folder) => folder !== join('packages', 'testing', 'src') && existsSync(join(root, folder)))
  .concat(join('prisma', 'migrations'));

function* sources(): Generator<string> {
  for (const folder of FOLDERS) {
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (/^(?!generated\/).*\.ts$|\/migration\.sql$/.test(path)) yield join(folder, path);
    }
  }
}

/*
 * Citus plans a statement for its values, so it rejects a generic plan that a setting enforces. A plan that a setting
 * disables costs 10,000,000,000 if there is no other, and JIT compiles such a plan at each execution.
 */
test('no code of the product sets how PostgreSQL plans its statements, except those of BullMQ', async () => {
  const testDatabase = await createTestDatabase();
  const { pool, close } = openDatabase({ url: testDatabase.url });
  const { rows } = await pool.query<{ name: string }>(
    `SELECT name FROM pg_settings WHERE category LIKE 'Query Tuning%' AND NOT name = ANY ($1)`,
    [ALLOWED],
  );
  await close();
  await testDatabase.drop();
  const setting = new RegExp(`\\b(${rows.map(({ name }) => name).join('|')})\\b`, 'g');
  const found: Record<string, string[]> = {};
  for (const path of sources()) {
    const names = new Set(readFileSync(join(root, path), 'utf8').match(setting));
    if (names.size > 0) found[path] = [...names].sort();
  }
  expect(found).toEqual(LEFT);
});
