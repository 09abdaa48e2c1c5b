import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedAccount,
  seedSubscription,
  startReceiver,
} from '@runhook/testing';
import { CleanupStack } from '../chaos/cleanup-stack.ts';
import { type BackendName, type Servers, startServers } from '../chaos/servers.ts';
import { type RunningService, startService } from '../services.ts';

/** Ends a test that hangs, because servers are killed and restarted five times. */
const STORY_TIMEOUT_MS = 600_000;

interface WatchedSystem {
  servers: Servers;
  database: PrismaDatabase;
  services: [RunningService, RunningService];
  /** Publishes an event and waits until it is delivered. */
  deliverOne(): Promise<void>;
}

const cleanup = new CleanupStack();

async function open(backend: BackendName): Promise<WatchedSystem> {
  const servers = await startServers(backend);
  cleanup.add(() => servers.close());
  const receiver = await startReceiver();
  cleanup.add(() => receiver.close());
  const database = openPrismaDatabase({ url: servers.databaseUrl, onConnectionError: () => undefined });
  cleanup.add(() => database.close());
  const account = await seedAccount(database);
  await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
  const environment = {
    DATABASE_URL: servers.databaseUrl,
    QUEUE_URL: servers.queueUrl,
    DELIVERY_TIMEOUT_MS: '2000',
  };
  const services = await Promise.all([
    startService('management', environment),
    startService('dispatcher', environment),
  ]);
  cleanup.add(() => Promise.all(services.map((service) => service.stop())));
  const job = account.jobs[0] as never;
  return {
    servers,
    database,
    services,
    async deliverOne() {
      const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
      const event = exampleEvent('job.run.started', job);
      try {
        await eventually(() => publisher.publish(event));
        await receiver.waitFor(({ body }) => body.includes(event.eventId));
      } finally {
        await publisher.close();
      }
    },
  };
}

async function probe(service: RunningService, path: string) {
  const response = await fetch(`${service.url}${path}`);
  return { status: response.status, checks: ((await response.json()) as { checks: object }).checks };
}

/** Without its queue a dispatcher is not ready. Management is ready and reports the queue, because it can still commit. */
const withoutQueue = async ({ services: [management, dispatcher] }: WatchedSystem) => {
  const checks = { queue: { ok: false }, database: { ok: true } };
  expect(await probe(management, '/readyz')).toMatchObject({ status: 200, checks });
  expect(await probe(dispatcher, '/readyz')).toMatchObject({ status: 503, checks });
  for (const service of [management, dispatcher])
    expect(await probe(service, '/healthz')).toMatchObject({ status: 200 });
};

const expectEveryService = async ({ services }: WatchedSystem, status: number, checks: object = {}) => {
  for (const service of services) {
    expect(await probe(service, '/readyz')).toMatchObject({ status, checks });
    // A restart would not fix an external fault.
    expect(await probe(service, '/healthz')).toMatchObject({ status: 200 });
  }
};

async function expectDeadServersReported(backend: BackendName, watched: WatchedSystem): Promise<void> {
  const { servers } = watched;
  await eventually(() => expectEveryService(watched, 200));
  await watched.deliverOne();

  if (backend === 'Redis') {
    await servers.killRedis();
    await eventually(() => withoutQueue(watched));
    await servers.restartRedis();
    await eventually(() => expectEveryService(watched, 200, { queue: { ok: true } }));
    await watched.deliverOne();
  }
  await servers.killPostgres();
  await eventually(() => expectEveryService(watched, 503, { database: { ok: false } }));
  await servers.restartPostgres();
  await eventually(() => expectEveryService(watched, 200, { database: { ok: true } }));
  await watched.deliverOne();
  await eventually(() => expectEveryService(watched, 200));
}

async function expectMissingMigrationsReported(watched: WatchedSystem): Promise<void> {
  const { pool } = watched.database;
  const latest = `SELECT max(migration_name) AS name FROM _prisma_migrations`;
  const name = (await pool.query<{ name: string }>(latest)).rows[0]?.name as string;
  const rename = (from: string, to: string) =>
    pool.query('UPDATE _prisma_migrations SET migration_name = $2 WHERE migration_name = $1', [from, to]);
  await rename(name, `${name}_of_another_build`);
  await eventually(() =>
    expectEveryService(watched, 503, { database: { ok: false, error: 'SCHEMA_BEHIND' } }),
  );
  await rename(`${name}_of_another_build`, name);
  await eventually(() => expectEveryService(watched, 200));
}

// The detection does not depend on the queue; other-queue.long.test.ts repeats this on the other one.
describe.each(oneQueueBackend())('services with the queue on $name', ({ name }) => {
  let watched: WatchedSystem;
  beforeAll(async () => {
    watched = await open(name);
  });
  afterAll(() => cleanup.run());

  test(
    'report a dead PostgreSQL or Redis in /readyz, and recover when it is back',
    () => expectDeadServersReported(name, watched),
    STORY_TIMEOUT_MS,
  );

  test(
    'are not ready while migrations are missing, and report the reason',
    () => expectMissingMigrationsReported(watched),
    STORY_TIMEOUT_MS,
  );
});
