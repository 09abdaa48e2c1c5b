import { expect, test } from '@jest/globals';
import type { JobRunEvent } from '@runhook/contract';
import { createAccount, createJob, createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  queueBackends,
  startReceiver,
} from '@runhook/testing';
import { startService } from './services.ts';

const RUNS = 2_000;
const FAILED_RUNS_EVERY = 10;
/** Runs that are reported at the same time. */
const CONCURRENCY = 16;
const DISPATCHERS = 3;

test.each(queueBackends())(
  'an ordered webhook gets the events of 2,000 runs in order while a dispatcher is killed, on $name',
  async (backend) => {
    const testDatabase = await createTestDatabase();
    const database = openPrismaDatabase({ url: testDatabase.url });
    const receiver = await startReceiver();
    const closers: (() => Promise<unknown>)[] = [];
    try {
      const { prisma } = database;
      const plan = { plan: 'enterprise', deployment: 'multi_tenant' } as const;
      const { id: accountId } = await createAccount(prisma, { name: 'Acme', ...plan });
      const permissionSets = ['account_admin' as const];
      const { token } = await createServiceToken(prisma, { accountId, name: 'test', permissionSets });
      const parents = { projectName: 'Analytics', environmentName: 'Production' };
      const { id: jobId } = await createJob(prisma, { accountId, name: 'Nightly', ...parents });
      const environment = {
        DATABASE_URL: testDatabase.url,
        QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
        // The deliveries of a killed dispatcher are found after the time of an attempt.
        DELIVERY_TIMEOUT_MS: '2000',
        DELIVERY_MAX_RETRIES: '10',
      };
      const management = await startService('management', environment);
      closers.push(() => management.stop());
      const dispatchers = await Promise.all(
        Array.from({ length: DISPATCHERS }, () => startService('dispatcher', environment)),
      );
      for (const dispatcher of dispatchers) closers.push(() => dispatcher.stop());

      async function call(method: string, path: string, body: unknown): Promise<void> {
        const response = await fetch(
          `${management.url}/api/${path.replace('{account}', String(accountId))}`,
          {
            method,
            headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
            body: JSON.stringify(body),
          },
        );
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      }
      const report = (path: string, body: unknown = {}) =>
        call('POST', `v2/accounts/{account}/runs/${path}`, body);

      // One request in five fails.
      receiver.respondWith((_request, index) => ({ status: index % 5 === 2 ? 500 : 200 }));
      await call('POST', 'v3/accounts/{account}/webhooks/subscriptions', {
        name: 'Runs',
        client_url: receiver.url,
        event_types: ['job.run.started', 'job.run.errored', 'job.run.completed'],
        ordered: true,
      });

      const isFailed = (run: number) => run % FAILED_RUNS_EVERY === 0;
      let next = 1;
      async function reportRuns(): Promise<void> {
        while (next <= RUNS) {
          const run = next++;
          await report('', { run_id: run, job_id: jobId, engine_version: '1.9.2' });
          await report(`${run}/finish/`, { status: isFailed(run) ? 'errored' : 'success' });
          await report(`${run}/artifacts/`);
          if (run === RUNS / 2) await dispatchers[0]?.kill();
        }
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, reportRuns));
      const expected = new Map(
        Array.from({ length: RUNS }, (_, index) => [
          String(index + 1),
          ['started', ...(isFailed(index + 1) ? ['errored'] : []), 'completed'],
        ]),
      );
      await eventually(
        async () => {
          const { rows } = await database.pool.query(
            `SELECT count(*) FILTER (WHERE status = 'delivered')::int AS delivered FROM deliveries`,
          );
          expect(rows).toEqual([{ delivered: [...expected.values()].flat().length }]);
        },
        { timeoutMs: 240_000 },
      );

      const firstArrivals = new Map<string, string[]>();
      for (const { body } of receiver.requests) {
        const { eventType, data } = JSON.parse(body.toString()) as JobRunEvent;
        const types = firstArrivals.get(data.runId) ?? [];
        const type = eventType.slice('job.run.'.length);
        firstArrivals.set(data.runId, types.includes(type) ? types : [...types, type]);
      }
      const missing = [...expected].filter(([run, types]) =>
        types.some((type) => !firstArrivals.get(run)?.includes(type)),
      );
      const outOfOrder = [...expected].filter(
        ([run, types]) => String(firstArrivals.get(run)) !== String(types),
      );
      expect({ missing, outOfOrder }).toEqual({ missing: [], outOfOrder: [] });
      const { rows: marked } = await database.pool.query('SELECT id FROM deliveries WHERE out_of_order');
      expect(marked).toEqual([]);
    } finally {
      for (const close of closers.reverse()) await close();
      await receiver.close();
      await database.close();
      await testDatabase.drop();
    }
  },
  600_000,
);
