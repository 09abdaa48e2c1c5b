import { setTimeout as wait } from 'node:timers/promises';
import type { JobView } from '@runhook/database';
import { createEventPublisher } from '@runhook/publisher';
import {
  eventually,
  exampleEvent,
  seedAccount,
  seedSubscription,
  seedSubscriptions,
  type TestAccount,
} from '@runhook/testing';
import { HANGING } from './endpoint.ts';
import type { Fault } from './faults.ts';
import { isLong, type World } from './world.ts';

const HANGING_EVENTS = isLong ? 2_000 : 500;
const HANG_MS = isLong ? 8_000 : 3_000;
const SUBSCRIPTIONS = 1_000;
const FLOOD_EVENTS = 20;
const FLOOD_INTERVAL_MS = 250;

/** Faults that another account of the same installation causes. `bench -- floods` measures how long other accounts wait. */
export const NEIGHBOURS: Fault[] = [
  {
    name: "another account's endpoint on the same host hangs",
    drainedWithinSeconds: 120,
    async strike(world) {
      const account = await seedAccount(world.database);
      await seedSubscription(world.database, {
        accountId: account.id,
        clientUrl: `${world.endpoint.url}${HANGING}`,
      });
      world.endpoint.suspend();
      await publish(world, account, HANGING_EVENTS);
      await wait(HANG_MS);
      world.endpoint.resume();
      return async () => {
        const counts = await countByStatus(world, account.id);
        return JSON.stringify(counts) === JSON.stringify({ delivered: HANGING_EVENTS })
          ? []
          : [`of ${HANGING_EVENTS} deliveries of the hanging path are ${JSON.stringify(counts)}`];
      };
    },
  },
  {
    name: 'another account has 1,000 subscriptions to a closed port',
    drainedWithinSeconds: 120,
    async strike(world) {
      const { database, endpoint } = world;
      const account = await seedAccount(database);
      await seedSubscriptions(database.pool, { accountId: account.id, count: SUBSCRIPTIONS });
      await database.pool.query(
        `UPDATE subscriptions SET active = true, event_types = ARRAY['job.run.started'], client_url = $2
         WHERE account_id = $1`,
        [account.id, endpoint.closedPortUrl],
      );
      for (let count = 0; count < FLOOD_EVENTS; count += 1) {
        await publish(world, account, 1);
        await wait(FLOOD_INTERVAL_MS);
      }
      const expected = SUBSCRIPTIONS * FLOOD_EVENTS;
      await eventually(async () => {
        const counts = await countByStatus(world, account.id);
        if (total(counts) !== expected) throw new Error(`${total(counts)} of ${expected} are planned`);
      });
      await database.pool.query('UPDATE subscriptions SET active = false WHERE account_id = $1', [
        account.id,
      ]);
      return async () => {
        const { cancelled = 0, failed = 0, ...others } = await countByStatus(world, account.id);
        return cancelled + failed === expected && total(others) === 0
          ? []
          : [
              `of ${expected} refused deliveries ${cancelled} are cancelled, ${failed} failed; ${JSON.stringify(others)}`,
            ];
      };
    },
  },
];

async function publish({ servers }: World, { jobs: [job] }: TestAccount, count: number): Promise<void> {
  const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
  try {
    const runs = Array.from({ length: count }, (_, index) => index + 1);
    const events = runs.map((runId) => exampleEvent('job.run.started', job as JobView, runId));
    // On a busy machine a connection may exceed the timeout of a call. Events have ids, so a repeat changes nothing.
    await eventually(() => publisher.publishMany(events));
  } finally {
    await publisher.close();
  }
}

async function countByStatus({ database }: World, accountId: number): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int AS count FROM deliveries WHERE account_id = $1 GROUP BY status',
    [accountId],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

const total = (counts: Record<string, number>) =>
  Object.values(counts).reduce((all, count) => all + count, 0);
