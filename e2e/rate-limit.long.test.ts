import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  createTestDatabase,
  createTestQueueUrl,
  exampleEvent,
  oneQueueBackend,
  type Receiver,
  seedAccount,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startService } from './services.ts';

const RATE = Number(process.env.RATE_LIMIT ?? 5);
/** Duration of the parts: without the limited webhook, with it, and after one of two dispatchers was killed. */
const SECONDS = { idle: 20, limited: 65, killed: 40 };
const TIMEOUT_MS = 600_000;
const FREE_EVERY_MS = 50;
const WINDOW_MS = 60_000;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Returns the numbers of requests in each window of a minute that begins with a request and ends before `untilMs`. */
function countsPerMinute(timesMs: readonly number[], untilMs: number): number[] {
  return timesMs
    .filter((firstMs) => firstMs + WINDOW_MS <= untilMs)
    .map((firstMs) => timesMs.filter((atMs) => atMs >= firstMs && atMs <= firstMs + WINDOW_MS).length);
}

function percentile95(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? 0;
}

const timesOf = ({ requests }: Receiver, path: string) =>
  requests.filter((request) => request.path === path).map(({ receivedAt }) => receivedAt);

/** Returns the times from the publication of events to their arrival at `/free`, by run id. */
function delaysOf({ requests }: Receiver, publishedAt: ReadonlyMap<number, number>): number[] {
  return requests.flatMap(({ path, body, receivedAt }) => {
    const at = path === '/free' ? publishedAt.get(Number(JSON.parse(body.toString()).data.runId)) : undefined;
    return at === undefined ? [] : [receivedAt - at];
  });
}

test.each(oneQueueBackend())(
  'dispatchers of which one is killed keep a rate limit in each minute, with the queue on $name',
  async (backend) => {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    const queueUrl = await createTestQueueUrl(backend, testDatabase.url);
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
    closers.push(() => database.close());
    const receiver = await startReceiver();
    closers.push(() => receiver.close());
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    const [busy, other] = [await seedAccount(database), await seedAccount(database)];
    const { id } = await seedSubscription(database, {
      accountId: busy.id,
      clientUrl: `${receiver.url}/limited`,
    });
    await seedSubscription(database, { accountId: other.id, clientUrl: `${receiver.url}/free` });
    await database.pool.query('UPDATE subscriptions SET rate_limit = $2 WHERE id = $1', [id, RATE]);
    const environment = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl };
    const [killed, survivor] = await Promise.all([
      startService('dispatcher', environment),
      startService('dispatcher', environment),
    ]);
    closers.push(() => survivor.stop());

    let runId = 1;
    const publishFree = async (seconds: number) => {
      const publishedAt = new Map<number, number>();
      const untilMs = Date.now() + seconds * 1_000;
      while (Date.now() < untilMs) {
        publishedAt.set(runId, Date.now());
        await publisher.publish(exampleEvent('job.run.started', other.jobs[0] as never, runId));
        runId += 1;
        await wait(FREE_EVERY_MS);
      }
      return publishedAt;
    };
    const idle = await publishFree(SECONDS.idle);

    const COUNT = RATE * 2 * (SECONDS.limited + SECONDS.killed);
    await publisher.publishMany(
      Array.from({ length: COUNT }, (_, index) =>
        exampleEvent('job.run.started', busy.jobs[0] as never, 1_000_000 + index),
      ),
    );
    const limited = await publishFree(SECONDS.limited);
    const killedAtMs = Date.now();
    await killed.kill();
    await publishFree(SECONDS.killed);

    const times = timesOf(receiver, '/limited');
    const untilKilled = countsPerMinute(times, killedAtMs);
    const counts = countsPerMinute(times, Date.now());
    const p95 = {
      idle: percentile95(delaysOf(receiver, idle)),
      limited: percentile95(delaysOf(receiver, limited)),
    };
    const figures = { most: Math.max(...counts), least: Math.min(...untilKilled), p95 };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    expect(Math.max(...counts)).toBeLessThanOrEqual(RATE * 60 + Math.max(1, RATE));
    expect(Math.min(...untilKilled)).toBeGreaterThanOrEqual(0.95 * RATE * 60);
    expect(times.length).toBeLessThan(COUNT);
    expect(p95.limited).toBeLessThan(2 * p95.idle + 100);
  },
  TIMEOUT_MS,
);
