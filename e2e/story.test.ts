import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  createDividedDatabase,
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  IN_VAIN_MS,
  queueBackends,
  type Receiver,
  seedAccount,
  startReceiver,
  type TestAccount,
  workerUrls,
} from '@runhook/testing';
import { type RunningService, startService } from './services.ts';

interface Answer<Data> {
  status: { code: number };
  data: Data;
}

interface Delivery {
  id: string;
  status: string;
  event_type: string;
  run_id: string;
  attempt_count: number;
  attempts: { number: number; http_status_code: string }[];
}

interface Subscription {
  id: string;
  hmac_secret: string;
  http_status_code: string;
}

/** Where Citus spreads the log, it is divided already. */
const DIVIDED = workerUrls().length > 0 ? [] : queueBackends().slice(-1);
const CASES = [
  ...queueBackends().map((backend) => ({ backend, createDatabase: createTestDatabase, log: '' })),
  ...DIVIDED.map((backend) => ({
    backend,
    createDatabase: createDividedDatabase,
    log: ', the log divided by account',
  })),
];

describe.each(CASES)(
  'the services as processes, queue on $backend.name$log',
  ({ backend, createDatabase }) => {
    const closers: (() => Promise<unknown>)[] = [];
    let account: TestAccount;
    let database: PrismaDatabase;
    let environment: { DATABASE_URL: string; QUEUE_URL: string };
    let management: RunningService;
    let dispatcher: RunningService;
    let receiver: Receiver;
    let token: string;

    beforeEach(async () => {
      const testDatabase = await createDatabase();
      closers.push(() => testDatabase.drop());
      database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
      closers.push(() => database.close());
      account = await seedAccount(database);
      const permissionSets = ['account_admin'] as const;
      token = (
        await createServiceToken(database.prisma, {
          accountId: account.id,
          name: 'e2e',
          permissionSets: [...permissionSets],
        })
      ).token;
      receiver = await startReceiver();
      closers.push(() => receiver.close());
      environment = {
        DATABASE_URL: testDatabase.url,
        QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
      };
      [management, dispatcher] = await Promise.all([
        startService('management', environment),
        startService('dispatcher', environment),
      ]);
      closers.push(async () => {
        expect(await Promise.all([management.stop(), dispatcher.stop()])).toEqual([0, 0]);
      });
    });
    afterEach(async () => {
      for (const close of closers.splice(0).reverse()) await close();
    });

    async function call<Data>(method: string, path: string, body?: object): Promise<Answer<Data>> {
      const response = await fetch(`${management.url}/api${path}`, {
        method,
        headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return (await response.json()) as Answer<Data>;
    }
    const webhooks = (rest: string) => `/v3/accounts/${account.id}/webhooks/${rest}`;
    const runs = (rest = '') => `/v2/accounts/${account.id}/runs/${rest}`;
    const subscribe = async (fields: object = {}) => {
      const body = {
        name: 'Pager',
        event_types: ['job.run.started', 'job.run.completed', 'job.run.errored'],
        client_url: `${receiver.url}/hook`,
        ...fields,
      };
      return (await call<Subscription>('POST', webhooks('subscriptions'), body)).data;
    };
    const deliveriesOf = async (id: string) =>
      (await call<Delivery[]>('GET', webhooks(`subscription/${id}/deliveries`))).data;
    const payloads = () => receiver.requests.map(({ body }) => JSON.parse(body.toString()));

    test('a run that fails is told twice, each delivery verifies with openssl alone, and the log has it', async () => {
      const { id, hmac_secret } = await subscribe();
      const job_id = account.jobs[0]?.id;
      const run = (await call<{ id: number }>('POST', runs(), { job_id, engine_version: '1.9.2' })).data;
      await call('POST', runs(`${run.id}/finish/`), {
        status: 'errored',
        status_message: 'Model orders failed',
      });
      await receiver.waitFor(2);
      expect(
        payloads()
          .map(({ eventType }) => eventType)
          .sort(),
      ).toEqual(['job.run.errored', 'job.run.started']);
      await call('POST', runs(`${run.id}/artifacts/`));
      await receiver.waitFor(3);

      const completed = payloads().find(({ eventType }) => eventType === 'job.run.completed');
      expect(completed).toMatchObject({
        accountId: account.id,
        webhooksID: id,
        webhookName: 'Pager',
        data: {
          runId: String(run.id),
          runStatus: 'Errored',
          runStatusCode: 20,
          runStatusMessage: 'Model orders failed',
        },
      });
      for (const { body, headers } of receiver.requests) {
        const openssl = spawnSync('openssl', ['dgst', '-sha256', '-hmac', hmac_secret, '-hex'], {
          input: body,
        });
        if (openssl.error) process.stdout.write(`openssl was not run: ${openssl.error.message}\n`);
        else expect(openssl.stdout.toString().trim().split('= ')[1]).toBe(headers.authorization);
      }
      await eventually(async () => {
        const deliveries = await deliveriesOf(id);
        expect(deliveries.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered']);
        const { data } = await call<Subscription>('GET', webhooks(`subscription/${id}`));
        expect(data.http_status_code).toBe('200');
      });
    });

    test('an event takes the same path whether it is published, over REST too, or reported, and its id is delivered once', async () => {
      const { id } = await subscribe();
      const job = account.jobs[0] as TestAccount['jobs'][number];
      const publisher = createEventPublisher({ queueUrl: environment.QUEUE_URL });
      closers.push(() => publisher.close());
      const published = exampleEvent('job.run.started', job, 4_001);
      await publisher.publish(published);
      await call('POST', runs(), { job_id: job.id, run_id: 4_002, engine_version: '1.9.2' });
      await receiver.waitFor(2);
      // What has arrived is on record a moment later.
      await eventually(async () => expect(await deliveriesOf(id)).toHaveLength(2));
      const overRest = exampleEvent('job.run.started', job, 4_004);
      const events = { events: [published, overRest] };
      const { data } = await call<{ events: { verdict: string }[] }>(
        'POST',
        `/v2/accounts/${account.id}/events`,
        events,
      );
      expect(data.events.map(({ verdict }) => verdict)).toEqual(['known', 'accepted']);
      await receiver.waitFor(3);
      await publisher.publish(published);
      await publisher.publish(overRest);
      await publisher.publish(exampleEvent('job.run.errored', job, 4_003));
      await receiver.waitFor(4);

      const deliveries = await eventually(async () => {
        const found = await deliveriesOf(id);
        expect(found.map(({ status }) => status)).toEqual(Array(4).fill('delivered'));
        return found;
      });
      expect(deliveries.map(({ run_id }) => run_id).sort()).toEqual(['4001', '4002', '4003', '4004']);
      const [fromQueue, fromRest] = payloads();
      expect(Object.keys(fromRest)).toEqual(Object.keys(fromQueue));
      expect(Object.keys(fromRest.data)).toEqual(Object.keys(fromQueue.data));
    });

    test('what has failed is redelivered by hand, with the same bytes, and numbered on', async () => {
      const { id } = await subscribe({ event_types: ['job.run.started'] });
      receiver.respondWith(500);
      await call('POST', runs(), { job_id: account.jobs[0]?.id, engine_version: '1.9.2' });
      await receiver.waitFor(6);
      const [failed] = await eventually(async () => {
        const found = await deliveriesOf(id);
        expect(found).toMatchObject([{ status: 'failed', attempt_count: 6 }]);
        return found;
      });
      receiver.respondWith(200);
      const path = webhooks(`subscription/${id}/delivery/${failed?.id}`);
      expect((await call('POST', `${path}/redeliver`)).status.code).toBe(202);
      const requests = await receiver.waitFor(7);
      expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1);
      await eventually(async () => {
        const { data } = await call<Delivery>('GET', path);
        expect(data).toMatchObject({ status: 'delivered', attempt_count: 7 });
        expect(data.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      });
    });

    test('an event that REST accepted is delivered although management is killed the instant after', async () => {
      await subscribe({ event_types: ['job.run.started'] });
      const accepted: number[] = [];
      const report = async (run_id: number) => {
        const body = { job_id: account.jobs[0]?.id, run_id, engine_version: '1.9.2' };
        const answer = await call('POST', runs(), body).catch(() => null);
        if (answer?.status.code === 201) accepted.push(run_id);
        if (accepted.length === 1) await management.kill();
      };
      await Promise.all(Array.from({ length: 20 }, (_, index) => report(6_000 + index)));
      expect(accepted.length).toBeGreaterThan(0);
      management = await startService('management', environment);
      await eventually(() => {
        const arrived = payloads().map(({ data }) => Number(data.runId));
        for (const run_id of accepted) expect(arrived).toContain(run_id);
      });
    });

    test('a dispatcher that is killed in the middle of its requests loses nothing', async () => {
      const { id } = await subscribe({ event_types: ['job.run.started'] });
      receiver.respondWith({ never: true });
      const job = account.jobs[0] as TestAccount['jobs'][number];
      const publisher = createEventPublisher({ queueUrl: environment.QUEUE_URL });
      closers.push(() => publisher.close());
      const events = Array.from({ length: 10 }, (_, index) =>
        exampleEvent('job.run.started', job, 5_000 + index),
      );
      await publisher.publishMany(events);
      await receiver.waitFor(10);
      await dispatcher.kill();
      receiver.respondWith(200);
      // It leaves first attempts to whoever began them for as long as one may take: here as long as in production.
      dispatcher = await startService('dispatcher', { ...environment, DELIVERY_TIMEOUT_MS: '10000' });
      await receiver.waitFor(20);
      await eventually(async () => {
        const deliveries = await deliveriesOf(id);
        expect(deliveries.map(({ status }) => status)).toEqual(Array(10).fill('delivered'));
      });
      // Ten were in flight when it died, and those alone are repeated.
      expect(receiver.requests).toHaveLength(20);
    });
  },
);
