import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEventPublisher } from '@runhook/publisher';
import {
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedSubscription,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

/** Duration of an outage: longer than a dispatcher waits before it first retries a commit. */
const OUTAGE_MS = 1_000;

describe.each(oneQueueBackend())('on $name', (backend) => {
  let harness: Harness;
  const proxies: TcpProxy[] = [];
  const openProxy = async (url: string) => {
    const proxy = await startTcpProxy(url);
    proxies.push(proxy);
    return proxy;
  };
  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never);

  beforeEach(async () => {
    harness = await openHarness(backend);
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
  });
  afterEach(async () => {
    await harness.close();
    for (const proxy of proxies.splice(0)) await proxy.close();
  });

  test('events wait while the database is unavailable, and each is delivered once afterwards', async () => {
    const proxy = await openProxy(harness.settings.databaseUrl);
    const { port } = await harness.startDispatcher({ databaseUrl: proxy.url });
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
    // A readiness check fails after two seconds, which may happen on a busy machine.
    await eventually(async () => expect(await ready()).toBe(200));
    await proxy.cut();
    const events = Array.from({ length: 20 }, event);
    await harness.publisher.publishMany(events);
    expect(await ready()).toBe(503);
    expect(harness.receiver.requests).toHaveLength(0);
    await proxy.restore();
    await harness.receiver.waitFor(20);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(20);
    });
    await eventually(async () => expect(await ready()).toBe(200));
    expect(harness.receiver.requests).toHaveLength(20);
  });

  test('an attempt that the database could not record is recorded later and not repeated', async () => {
    const proxy = await openProxy(harness.settings.databaseUrl);
    await harness.startDispatcher({ databaseUrl: proxy.url });
    harness.receiver.respondWith(async () => {
      await proxy.cut();
      return { status: 200 };
    });
    await harness.publisher.publish(event());
    await harness.receiver.waitFor(1);
    await wait(OUTAGE_MS);
    await proxy.restore();
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered', attempt_count: 1 }]);
    });
    expect(harness.receiver.requests).toHaveLength(1);
    // `created_at` is the time of the plan, before the attempt; one statement computes it and `completed_at`.
    const { rows } = await harness.database.pool.query(
      'SELECT (extract(epoch FROM completed_at - created_at) * 1000)::float8 AS waited_ms FROM deliveries',
    );
    expect(rows[0].waited_ms).toBeGreaterThan(OUTAGE_MS / 2);
  });

  test('while the queue is unavailable the dispatcher stays up, and it continues once the queue is available again', async () => {
    const proxy = await openProxy(harness.settings.queueUrl);
    await harness.startDispatcher({ queueUrl: proxy.url });
    const publisher = createEventPublisher({ queueUrl: harness.queueUrl });
    await publisher.publish(event());
    await harness.receiver.waitFor(1);
    await proxy.cut();
    await publisher.publish(event());
    await proxy.restore();
    await harness.receiver.waitFor(2, { timeoutMs: 90_000 });
    await publisher.close();
  });

  test('a dispatcher that starts before its database and queue waits for them', async () => {
    const database = await openProxy(harness.settings.databaseUrl);
    const queue = await openProxy(harness.settings.queueUrl);
    await database.cut();
    await queue.cut();
    const starting = harness.startDispatcher({ databaseUrl: database.url, queueUrl: queue.url });
    await harness.publisher.publish(event());
    await database.restore();
    await queue.restore();
    await starting;
    await harness.receiver.waitFor(1);
  });
});
