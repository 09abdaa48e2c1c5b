import { JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { createQueueBackend } from '@runhook/queue';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { balance } from '../measure/ledger.ts';
import { sharedNowMs } from '../measure/timing.ts';
import type { Published } from '../programs/publisher.ts';
import {
  countDeliveries,
  createWorkload,
  settle,
  subscriptionIds,
  takeArrivals,
  type WorkloadSubscription,
} from '../world/workload.ts';
import type { World } from '../world/world.ts';

const EVENTS_FULL = 10_000;
const EVENTS_QUICK = 1_000;
/** Share of the events that are delivered before the webhook is changed. */
const SHARE_BEFORE_CHANGE = 0.1;

/**
 * Changes or deletes a webhook while events are queued, and measures when the last request to the old address arrives.
 */
export async function change(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis', { management: true });
  try {
    await world.setDispatchers(2);
    const rows: Row[] = [];
    for (const kind of ['updated', 'deleted'] as const) {
      rows.push(
        await measureCase(bench, `${kind} while events wait`, () => measureChange(bench, world, kind)),
      );
    }
    return { name: 'change', rows };
  } finally {
    await world.close();
  }
}

async function measureChange(bench: Bench, world: World, kind: 'updated' | 'deleted'): Promise<Measured> {
  const events = bench.isQuick ? EVENTS_QUICK : EVENTS_FULL;
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: 1 }]);
  const subscription = workload.subscriptionsByTemplate[0]?.[0] as WorkloadSubscription;
  const { accountId } = workload.templates[0] as JobRunEvent;
  const { token } = await createServiceToken(world.database.prisma, {
    accountId,
    name: 'bench',
    permissionSets: ['account_admin'],
  });
  const queue = createQueueBackend(world.queueUrl).createQueue(JOB_RUN_EVENTS);
  try {
    await queue.pause();
    const published = await world.publisher.call<Published>('prefill', {
      count: events,
      templates: workload.templates,
    });
    await takeArrivals(world);
    await queue.resume();
    while ((await world.receiver.call<number>('count')) < events * SHARE_BEFORE_CHANGE) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const newPath = `${subscription.path}/moved`;
    await callApi(world, accountId, token, subscription, kind, newPath);
    const respondedAtMs = sharedNowMs();
    await waitUntilNoJobIsOpen(queue);
    await settle(world, workload);
    const arrivals = await takeArrivals(world);
    const oldPathTimesMs = [...(arrivals.timesMs as Float64Array)].filter(
      (_, index) => arrivals.paths[index] === subscription.path,
    );
    const counts = await countDeliveries(
      world,
      subscriptionIds(workload, () => true),
    );
    const arrivalsOnOldPath = { ...arrivals, paths: arrivals.paths.map(() => subscription.path) };
    const explained = {
      cancelled: counts.cancelled,
      noDelivery: events - Object.values(counts).reduce((a, b) => a + b),
    };
    return {
      figures: {
        lastOldUrlMs: Math.max(0, ...oldPathTimesMs.map((atMs) => atMs - respondedAtMs)),
        oldUrlRequestsAfterChange: oldPathTimesMs.filter((atMs) => atMs > respondedAtMs).length,
        newUrlRequests: arrivals.paths.filter((path) => path === newPath).length,
        notSent: explained.cancelled + explained.noDelivery,
      },
      balance: balance(workload.expected(published), arrivalsOnOldPath, explained),
    };
  } finally {
    await queue.close();
  }
}

async function callApi(
  world: World,
  accountId: number,
  token: string,
  subscription: { id: string; path: string; url: string },
  kind: 'updated' | 'deleted',
  newPath: string,
): Promise<void> {
  const url = `${world.management?.url}/api/v3/accounts/${accountId}/webhooks/subscription/${subscription.id}`;
  const clientUrl = subscription.url.replace(subscription.path, newPath);
  const body = { name: 'Moved', event_types: ['job.run.completed'], client_url: clientUrl };
  const response = await fetch(url, {
    method: kind === 'updated' ? 'PUT' : 'DELETE',
    headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
    ...(kind === 'updated' ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok)
    throw new Error(`the response to the change was ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

/** Waits until no job waits or is active, for a minute at most. Delayed retries do not count. */
async function waitUntilNoJobIsOpen(queue: {
  getJobCounts(): Promise<Record<string, number>>;
}): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
    const { waiting = 0, prioritized = 0, active = 0, paused = 0 } = await queue.getJobCounts();
    if (waiting + prioritized + active + paused === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
