import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from '@jest/globals';
import { createId, type JobRunEvent } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  seedAccount,
  seedSubscription,
  type TestAccount,
} from '@runhook/testing';
import { type RunningService, startService } from './services.ts';

const EVENTS = 10_000;
const BATCH = 50;
const KILLS = 10;
const OPEN_MS = 20_000;
const DAY_MS = 86_400_000;
const COUNT_TIMEOUT_MS = 120_000;
const CONSUMER = fileURLToPath(new URL('feed-consumer.mjs', import.meta.url));

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Two processes of each service commit events: those of REST calls and those of the queue. */
async function openWorld() {
  const { url, drop } = await createTestDatabase();
  closers.push(drop);
  const queueUrl = await createTestQueueUrl(queueBackends()[0] ?? { name: 'PostgreSQL' }, url);
  const environment = { DATABASE_URL: url, QUEUE_URL: queueUrl };
  const services = await Promise.all(
    (['management', 'management', 'dispatcher', 'dispatcher'] as const).map((name) =>
      startService(name, environment),
    ),
  );
  closers.push(() => Promise.all(services.map((service) => service.stop())));
  const database = openPrismaDatabase({ url });
  closers.push(() => database.close());
  const publisher = createEventPublisher({ queueUrl });
  closers.push(() => publisher.close());
  const account = await seedAccount(database);
  const { id } = await seedSubscription(database, { accountId: account.id, clientUrl: '' });
  const permissionSets: ['account_admin'] = ['account_admin'];
  const { token } = await createServiceToken(database.prisma, {
    accountId: account.id,
    name: 'feed',
    permissionSets,
  });
  return { database, publisher, account, token, webhookId: id, management: services.slice(0, 2) };
}

type World = Awaited<ReturnType<typeof openWorld>>;

/** A third of the ids are of earlier days. */
function eventOf({ jobs }: TestAccount, run: number): JobRunEvent {
  const job = jobs[0] as TestAccount['jobs'][number];
  const ageDays = run % 3 === 0 ? (run / 3) % 25 : 0;
  return {
    ...exampleEvent('job.run.errored', job, run),
    eventId: createId('event', Date.now() - ageDays * DAY_MS),
  };
}

async function postEvents(
  service: RunningService,
  { account, token }: World,
  events: JobRunEvent[],
): Promise<void> {
  const response = await fetch(`${service.url}/api/v2/accounts/${account.id}/events/`, {
    method: 'POST',
    headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  expect(response.status).toBe(202);
}

/** Commits the events by REST through both processes and by the queue. Returns their ids. */
async function commitEvents(world: World, publisher: EventPublisher): Promise<string[]> {
  const ids: string[] = [];
  const [first, second] = world.management as [RunningService, RunningService];
  const senders = [
    (events: JobRunEvent[]) => postEvents(first, world, events),
    (events: JobRunEvent[]) => postEvents(second, world, events),
    async (events: JobRunEvent[]) =>
      void (await Promise.all(events.map((event) => publisher.publish(event)))),
  ];
  await Promise.all(
    senders.map(async (send, sender) => {
      for (let run = 1 + sender * BATCH; run <= EVENTS; run += senders.length * BATCH) {
        const events = Array.from({ length: BATCH }, (_, index) => eventOf(world.account, run + index));
        ids.push(...events.map(({ eventId }) => eventId));
        await send(events);
        // The load lasts for longer than the open transaction.
        await wait(400);
      }
    }),
  );
  return ids;
}

/** Inserts an event in a transaction that stays open. Returns its id. */
async function commitLate({ pool }: PrismaDatabase, { account }: World): Promise<string> {
  const { eventId, eventType, timestamp, data } = eventOf(account, EVENTS + 1_000);
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data) VALUES ((now() AT TIME ZONE 'UTC')::date, $1, $2, $3, $4, $5)`,
      [eventId, account.id, eventType, timestamp, JSON.stringify(data)],
    );
    await wait(OPEN_MS);
    await client.query('COMMIT');
    return eventId;
  } finally {
    client.release();
  }
}

/** A consumer process, with the files in which it stores the ids and its cursor. */
function startConsumer({ management, account, token, webhookId }: World, folder: string): ChildProcess {
  const service = management[0] as RunningService;
  const url = `${service.url}/api/v3/accounts/${account.id}/webhooks/subscription/${webhookId}/events`;
  return spawn(process.execPath, [CONSUMER], {
    env: { FEED_URL: url, FEED_TOKEN: token, FEED_FOLDER: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

const consumedIds = (folder: string) => readFileSync(join(folder, 'ids'), 'utf8').split('\n').slice(0, -1);

test('a consumer that is killed ten times gets each of 10,000 events of four committers, in one order', async () => {
  const world = await openWorld();
  const folder = mkdtempSync(join(tmpdir(), 'runhook-feed-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'ids'), '');
  const committing = Promise.all([commitEvents(world, world.publisher), commitLate(world.database, world)]);
  let consumer = startConsumer(world, folder);
  closers.push(() => consumer.kill('SIGKILL'));
  for (let kills = 0; kills < KILLS; kills += 1) {
    await wait(2_000 + 137 * kills);
    consumer.kill('SIGKILL');
    await once(consumer, 'exit');
    consumer = startConsumer(world, folder);
  }
  const [ids, lateId] = await committing;
  const expected = new Set([...ids, lateId]);
  await eventually(() => expect(new Set(consumedIds(folder)).size).toBeGreaterThanOrEqual(expected.size), {
    timeoutMs: COUNT_TIMEOUT_MS,
  });
  const consumed = consumedIds(folder);
  const order = [...new Set(consumed)];
  expect([...expected].filter((id) => !order.includes(id))).toEqual([]);
  expect(order).toHaveLength(expected.size);
  const positions = await world.database.pool.query<{ id: string }>(
    'SELECT id FROM events WHERE account_id = $1 ORDER BY position, id COLLATE "C"',
    [world.account.id],
  );
  expect(order).toEqual(positions.rows.map(({ id }) => id));
});
