import { afterEach, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  countDispatchedEvents,
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  seedAccount,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startService } from './services.ts';

const EVENTS = 500;
/** Attempts that finished at least this long before a kill are in the log (docs/reliability.md). */
const RECORDED_WITHIN_MS = 500;

/** Data of the responses that the test reads. */
interface ResponseData {
  [field: string]: unknown;
  id: string;
  status: string;
  since: string;
  until: string;
  total_count: number;
  counts: object;
  outcome: { delivered: number; pending: number };
}

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test.each(queueBackends())(
  'events of the time for which a webhook was inactive are sent once, although the dispatcher is killed meanwhile, on $name',
  async (backend) => {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
    closers.push(() => database.close());
    const { id: accountId, jobs } = await seedAccount(database);
    const receiver = await startReceiver();
    closers.push(() => receiver.close());
    const subscription = await seedSubscription(database, { accountId, clientUrl: receiver.url });
    const token = { accountId, name: 'e2e', permissionSets: ['account_admin' as const] };
    const authorization = `Token ${(await createServiceToken(database.prisma, token)).token}`;
    const queueUrl = await createTestQueueUrl(backend, testDatabase.url);
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: queueUrl,
      // The reconciler finds lost deliveries by this time plus 5 s.
      DELIVERY_TIMEOUT_MS: '2000',
    };
    const management = await startService('management', environment);
    closers.push(() => management.stop());
    const first = await startService('dispatcher', environment);
    closers.push(() => first.kill());
    const call = async (method: string, rest: string, body?: object) => {
      const path = `/api/v3/accounts/${accountId}/webhooks/subscription/${subscription.id}${rest}`;
      const response = await fetch(management.url + path, {
        method,
        headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      expect(response.ok).toBe(true);
      return ((await response.json()) as { data: ResponseData }).data;
    };
    const setActive = async (active: boolean) => {
      const { name, event_types, job_ids, client_url } = await call('GET', '');
      await call('PUT', '', { name, event_types, job_ids, client_url, active });
    };
    const count = (fields: object) =>
      call('POST', '/recover', { include: 'unsent', dry_run: true, ...fields });

    await setActive(false);
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    const events = Array.from({ length: EVENTS }, (_, index) =>
      exampleEvent('job.run.started', jobs[0] as never, 8_000 + index),
    );
    for (const event of events) await publisher.publish(event);
    await eventually(async () => expect(await countDispatchedEvents(database)).toBe(EVENTS));
    await setActive(true);
    expect(receiver.requests).toHaveLength(0);

    const { since, until, total_count } = await count({});
    expect(total_count).toBe(EVENTS);
    const recovery = await call('POST', '/recover', { include: 'unsent', since, until });
    expect(recovery).toMatchObject({ status: 'running', total_count: EVENTS });
    const outcome = async () => (await call('GET', `/recovery/${recovery.id}`)).outcome;
    await eventually(async () => {
      const { delivered, pending } = await outcome();
      expect(delivered).toBeGreaterThan(0);
      expect(pending).toBe(0);
    });
    await first.kill();
    const killedAtMs = Date.now();
    const sentBefore = receiver.requests.filter(
      ({ receivedAt }) => receivedAt < killedAtMs - RECORDED_WITHIN_MS,
    );
    expect((await call('GET', `/recovery/${recovery.id}`)).status).toBe('running');
    const second = await startService('dispatcher', environment);
    closers.push(() => second.stop());
    await eventually(async () => expect(await outcome()).toMatchObject({ delivered: EVENTS }));

    const idOf = ({ body }: (typeof receiver.requests)[number]) => JSON.parse(String(body)).eventId as string;
    const counts = new Map<string, number>();
    for (const request of receiver.requests) counts.set(idOf(request), (counts.get(idOf(request)) ?? 0) + 1);
    expect(new Set(counts.keys())).toEqual(new Set(events.map(({ eventId }) => eventId)));
    expect(sentBefore.filter((request) => counts.get(idOf(request)) !== 1)).toEqual([]);
    expect(await call('GET', `/recovery/${recovery.id}`)).toMatchObject({
      status: 'done',
      recovered_count: EVENTS,
    });
    expect((await count({ since, until })).counts).toMatchObject({ unsent: 0, delivered: EVENTS });
  },
  300_000,
);
