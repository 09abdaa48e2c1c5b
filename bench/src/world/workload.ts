import { setTimeout as wait } from 'node:timers/promises';
import type { JobRunEvent } from '@runhook/contract';
import { exampleEvent, seedAccount, seedSubscription } from '@runhook/testing';
import type { Arrivals, Expected } from '../measure/ledger.ts';
import type { Published } from '../programs/publisher.ts';
import type { ReceivedBatch } from '../programs/receiver.ts';
import type { World } from './world.ts';

/** The behaviour of endpoints, and the number of subscriptions per account that use such endpoints. */
export interface EndpointKind {
  /** The first part of the path, which selects the receiver's behaviour: `ok`, `after-100`, `hanging`. */
  behaviour: string;
  accounts: number;
  subscriptionsPerAccount?: number;
  /**
   * Address of all endpoints; default: a separate one in 127.0.0.0/8 for each, which the service treats as separate
   * servers.
   */
  address?: string;
  /** Default: the receiver's port. */
  port?: number;
}

export interface WorkloadSubscription {
  id: string;
  path: string;
  url: string;
  behaviour: string;
}

/** New accounts with one or more subscriptions each, at separate endpoints. */
export interface Workload {
  /** The events, one per account. */
  templates: JobRunEvent[];
  /** Subscriptions in the order of the templates. */
  subscriptionsByTemplate: WorkloadSubscription[][];
  /** Returns the deliveries that the published events must result in, at endpoints that respond. */
  expected(published: Published): Expected[];
}

let lastEndpoint = 0;

export async function createWorkload(world: World, kinds: readonly EndpointKind[]): Promise<Workload> {
  const accounts = kinds.flatMap(({ accounts: count, subscriptionsPerAccount = 1, ...kind }) =>
    Array.from({ length: count }, () => ({ ...kind, subscriptionsPerAccount })),
  );
  const created = await mapInParallel(
    accounts,
    async ({ behaviour, subscriptionsPerAccount, address, port }) => {
      const { id, jobs } = await seedAccount(world.database);
      const numbers = Array.from({ length: subscriptionsPerAccount }, () => ++lastEndpoint);
      const subscriptions = await mapInParallel(numbers, async (number): Promise<WorkloadSubscription> => {
        const path = `/${behaviour}/${number}`;
        const url = `http://${address ?? endpointAddress(number)}:${port ?? world.receiver.port}${path}`;
        const subscription = await seedSubscription(world.database, { accountId: id, clientUrl: url });
        return { id: subscription.id, path, url, behaviour };
      });
      return { template: exampleEvent('job.run.completed', jobs[0] as (typeof jobs)[number]), subscriptions };
    },
  );
  const templates = created.map(({ template }) => template);
  return toWorkload(
    templates,
    created.map(({ subscriptions }) => subscriptions),
  );
}

/** Combines both workloads; their events alternate if both have the same number of accounts. */
export function mergeWorkloads(one: Workload, other: Workload): Workload {
  return toWorkload(
    [...one.templates, ...other.templates],
    [...one.subscriptionsByTemplate, ...other.subscriptionsByTemplate],
  );
}

function toWorkload(templates: JobRunEvent[], subscriptionsByTemplate: WorkloadSubscription[][]): Workload {
  return {
    templates,
    subscriptionsByTemplate,
    expected: (published) =>
      published.eventIds
        .split('\n')
        .flatMap((eventId, index) =>
          (subscriptionsByTemplate[published.templateIndexes[index] as number] ?? [])
            .filter((subscription) => subscription.behaviour !== 'hanging')
            .map(({ path }) => ({ eventId, path, intendedMs: published.intendedMs[index] as number })),
        ),
  };
}

export interface LogCounts {
  delivered: number;
  pending: number;
  failed: number;
  cancelled: number;
}

/** Counts the deliveries of these subscriptions in the log, by status. */
export async function countDeliveries(world: World, subscriptionIds: readonly string[]): Promise<LogCounts> {
  const { rows } = await world.database.pool.query<{ status: keyof LogCounts; count: string }>(
    'SELECT status, count(*) FROM deliveries WHERE subscription_id = ANY($1) GROUP BY 1',
    [subscriptionIds],
  );
  const counts: LogCounts = { delivered: 0, pending: 0, failed: 0, cancelled: 0 };
  for (const { status, count } of rows) counts[status] = Number(count);
  return counts;
}

const PARALLEL = 8;

/** Runs in order, a few items concurrently. */
async function mapInParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  async function take(): Promise<void> {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index] as Item);
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, take));
  return results;
}

function endpointAddress(endpoint: number): string {
  return `127.${1 + (Math.floor(endpoint / 62_500) % 250)}.${Math.floor(endpoint / 250) % 250}.${1 + (endpoint % 250)}`;
}

/**
 * Publishes events for a separate account as fast as the queue accepts them: most of them are still queued when the
 * others begin.
 */
export async function publishBurst(
  world: World,
  count: number,
  behaviour: string,
): Promise<{ workload: Workload; expected: Expected[] }> {
  const workload = await createWorkload(world, [{ behaviour, accounts: 1 }]);
  const { templates } = workload;
  const published = await world.publisher.call<Published>('prefill', { count, templates });
  return { workload, expected: workload.expected(published) };
}

const SETTLE_TIMEOUT_MS = 30_000;
const SETTLE_POLL_MS = 100;

/** Waits until the log has all results of endpoints that respond: none of their deliveries is pending. */
export async function settle(world: World, workload: Workload): Promise<void> {
  const ids = subscriptionIds(workload, (behaviour) => behaviour !== 'hanging');
  for (const deadline = Date.now() + SETTLE_TIMEOUT_MS; Date.now() < deadline; ) {
    if ((await countDeliveries(world, ids)).pending === 0) return;
    await wait(SETTLE_POLL_MS);
  }
}

export function subscriptionIds(workload: Workload, isWanted: (behaviour: string) => boolean): string[] {
  return workload.subscriptionsByTemplate
    .flat()
    .filter(({ behaviour }) => isWanted(behaviour))
    .map(({ id }) => id);
}

/** Returns the requests that have arrived since the last call. */
export async function takeArrivals({
  receiver,
}: Pick<World, 'receiver'>): Promise<
  Arrivals & { lateMs: Float64Array; first: { eventId: string; atMs: number }[] }
> {
  const batch = await receiver.call<ReceivedBatch>('take');
  const { eventIds, paths, timesMs, lateMs, firstEventIds, firstMs } = batch;
  const first = splitLines(firstEventIds).map((eventId, index) => ({
    eventId,
    atMs: firstMs[index] as number,
  }));
  return { eventIds: splitLines(eventIds), paths: splitLines(paths), timesMs, lateMs, first };
}

function splitLines(text: string): string[] {
  return text === '' ? [] : text.split('\n');
}
