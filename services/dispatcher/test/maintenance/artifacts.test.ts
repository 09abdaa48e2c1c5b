import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openArtifactStore } from '@runhook/artifacts';
import { type Database, openDatabase } from '@runhook/database';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { purgeArtifacts } from '../../src/maintenance/artifacts.ts';

let testDatabase: TestDatabase;
let database: Database;
/** With the role of the dispatchers. */
let dispatcher: Database;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  dispatcher = openDatabase({ url: testDatabase.dispatcherUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterAll(async () => {
  await dispatcher.close();
  await database.close();
  await testDatabase.drop();
});

async function addFile(runId: number, ageDays: number): Promise<void> {
  const values = [runId, randomUUID(), ageDays];
  await database.pool.query(
    `WITH content AS (INSERT INTO artifact_contents (account_id, run_id, object_id, part, content)
       VALUES (1, $1, $2, 0, 'x')),
     model AS (INSERT INTO run_models (account_id, run_id, step, position, unique_id, name, resource_type, status,
         run_created_at)
       VALUES (1, $1, 0, 1, 'model.a.b', 'b', 'model', 'success', now() - $3::int * interval '1 day'))
     INSERT INTO artifacts (account_id, run_id, path, step, object_id, bytes, sha256, run_created_at)
     VALUES (1, $1, 'a', 0, $2, 1, '', now() - $3::int * interval '1 day')`,
    values,
  );
}

const runsOf = async (table: string) => {
  const { rows } = await database.pool.query(`SELECT DISTINCT run_id::int AS id FROM ${table} ORDER BY id`);
  return rows.map(({ id }) => id);
};

test('artifacts, their contents and models are deleted with the age of their run, and at the latest with it', async () => {
  for (const ageDays of [1, 9, 11, 31, 400]) await addFile(ageDays, ageDays);
  const artifactStore = openArtifactStore({ location: undefined, database: dispatcher.pool, s3: {} });
  const purge = (artifactRetentionDays: number, runRetentionDays: number) =>
    purgeArtifacts({
      pool: dispatcher.pool,
      artifactStore,
      artifactRetentionDays,
      runRetentionDays,
      batchSize: 1,
    });
  expect(await purge(30, 365)).toEqual({ artifacts: 2, models: 2 });
  for (const table of ['artifacts', 'artifact_contents', 'run_models'])
    expect(await runsOf(table)).toEqual([1, 9, 11]);
  expect(await purge(30, 10)).toEqual({ artifacts: 1, models: 1 });
  for (const table of ['artifacts', 'artifact_contents', 'run_models'])
    expect(await runsOf(table)).toEqual([1, 9]);
});
