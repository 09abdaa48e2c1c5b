import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { RunRequest } from '@runhook/contract';
import { type Database, openDatabase } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { purge } from '../../src/maintenance/purge.ts';
import { reconcileRunRequests } from '../../src/maintenance/run-requests.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
/** With the role of the dispatchers. */
let dispatcher: Database;
let accountId: number;
const added: RunRequest[] = [];
const removed: RunRequest[] = [];
const runRequests = {
  add: async (requests: readonly RunRequest[]) => void added.push(...requests),
  remove: async (requests: readonly RunRequest[]) => void removed.push(...requests),
};
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  dispatcher = openDatabase({ url: testDatabase.dispatcherUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
  accountId = (await seedAccount(database)).id;
});
afterEach(async () => {
  added.length = 0;
  removed.length = 0;
  await dispatcher.close();
  await database.close();
  await testDatabase.drop();
});

/** Inserts a triggered run. @param ages seconds since its trigger, the end of its lease, and its last job of the queue */
async function insertRequest(
  runId: number,
  status: string,
  ages: { triggered?: number; lease?: number; enqueued?: number } = {},
): Promise<void> {
  const { triggered = 10, lease = null, enqueued = null } = ages;
  await database.pool.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status)
     VALUES ($1, $2, 7, 'a', 1, 'a', 1, 'a', $3)`,
    [accountId, runId, status],
  );
  const secondsAgo = (parameter: number) => `now() - $${parameter}::int * interval '1 second'`;
  await database.pool.query(
    `INSERT INTO run_requests (account_id, run_id, job_id, attempts, created_at, lease_expires_at, enqueued_at)
     VALUES ($1, $2, 7, $3, ${secondsAgo(4)}, ${secondsAgo(5)}, ${secondsAgo(6)})`,
    [accountId, runId, lease === null ? 0 : 1, triggered, lease, enqueued],
  );
}

const run = (batchSize?: number) =>
  reconcileRunRequests({ pool: dispatcher.pool, runRequests, ...(batchSize && { batchSize }) });
const runsOf = (requests: RunRequest[]) => requests.map(({ runId, attempt }) => [runId, attempt]);

test('adds runs to the queue whose job is missing, once a minute, and those whose lease has expired', async () => {
  await insertRequest(1, 'Queued');
  await insertRequest(2, 'Queued', { triggered: 0 });
  await insertRequest(3, 'Queued', { enqueued: 30 });
  await insertRequest(4, 'Queued', { enqueued: 90, triggered: 9 });
  await insertRequest(5, 'Running', { lease: 1, enqueued: 30, triggered: 8 });
  await insertRequest(6, 'Running', { lease: -30, enqueued: 90 });
  expect(await run()).toEqual({ queued: 3, ended: 0 });
  expect(runsOf(added).toSorted()).toEqual([
    [1, 1],
    [4, 1],
    [5, 2],
  ]);
  expect(added.find(({ runId }) => runId === 1)).toEqual({ accountId, runId: 1, jobId: 7, attempt: 1 });
  expect(await run()).toEqual({ queued: 0, ended: 0 });
});

test('a pass handles all batches, and adds new runs and those with an expired lease before repetitions', async () => {
  await insertRequest(1, 'Queued', { enqueued: 90, triggered: 120 });
  await insertRequest(2, 'Queued', { enqueued: 99, triggered: 110 });
  await insertRequest(3, 'Running', { lease: 70, enqueued: 65, triggered: 150 });
  await insertRequest(4, 'Running', { lease: 1, enqueued: 30, triggered: 40 });
  await insertRequest(5, 'Queued', { triggered: 50 });
  for (const runId of [6, 7, 8]) await insertRequest(runId, 'Success');
  expect(await run(2)).toEqual({ queued: 5, ended: 3 });
  expect(added.map(({ runId }) => runId)).toEqual([5, 4, 2, 1, 3]);
});

test('ends the requests of runs that have ended or were started without a lease, and deletes them a day later', async () => {
  await insertRequest(1, 'Success', { lease: -30 });
  await insertRequest(2, 'Canceled');
  await insertRequest(3, 'Running');
  await insertRequest(4, 'Running', { lease: -30 });
  expect(await run()).toEqual({ queued: 0, ended: 3 });
  expect(runsOf(removed).toSorted()).toEqual([
    [1, 1],
    [1, 2],
    [2, 0],
    [2, 1],
    [3, 0],
    [3, 1],
  ]);
  await database.pool.query(
    `UPDATE run_requests SET ended_at = ended_at - interval '25 hours' WHERE run_id < 3`,
  );
  expect(await purge(dispatcher.pool, { logRetentionDays: 30, runRetentionDays: 365 })).toMatchObject({
    runRequests: 2,
  });
});
