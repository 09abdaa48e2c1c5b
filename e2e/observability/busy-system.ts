import { setTimeout as wait } from 'node:timers/promises';
import { createEventPublisher } from '@runhook/publisher';
import { exampleEvent, type QueueBackend, seedSubscription } from '@runhook/testing';
import type { RunningService } from '../services.ts';
import { callApi, openSystem } from './system.ts';

/** Both services, under a load that uses all of their parts, until they are closed. */
export interface BusySystem {
  management: RunningService;
  dispatcher: RunningService;
  /** Texts of the data that are processed; labels must not contain them. */
  unboundedLabelValues: string[];
  close(): Promise<void>;
}

/**
 * Interval between two rounds of the load: the scrape interval of Prometheus; a shorter one would cost CPU during all
 * tests.
 */
const ROUND_INTERVAL_MS = 1_000;
/** EGRESS_ALLOW_CIDRS of these services does not permit this address. */
const FORBIDDEN_URL = 'http://10.1.2.3/inside';

export async function openBusySystem(backend: QueueBackend): Promise<BusySystem> {
  const system = await openSystem(backend);
  const { account, database, receiver } = system;
  receiver.respondWith(async ({ path }) => {
    await wait(10);
    return { status: path === '/failing' ? 503 : 200 };
  });
  const subscribe = (clientUrl: string) => seedSubscription(database, { accountId: account.id, clientUrl });
  const subscriptions = [
    await subscribe(`${receiver.url}/healthy`),
    await subscribe(`${receiver.url.replace('127.0.0.1', '127.0.0.2')}/away`),
    await subscribe(`${receiver.url}/failing`),
    await subscribe(FORBIDDEN_URL),
  ];
  const [management, dispatcher] = await Promise.all([
    system.start('management'),
    system.start('dispatcher', { RETRY_BASE_DELAY_MS: '100', DELIVERY_MAX_RETRIES: '3' }),
  ]);
  const publisher = createEventPublisher({ queueUrl: system.queueUrl });
  const job = account.jobs[0] as (typeof account.jobs)[number];
  let ended = false;

  async function round(runId: number): Promise<void> {
    const runs = `/v2/accounts/${account.id}/runs/`;
    await publisher.publishMany([
      exampleEvent('job.run.started', job, runId),
      exampleEvent('job.run.errored', job, runId),
    ]);
    const body = { job_id: job.id, run_id: 1_000_000 + runId, engine_version: '1.9.2' };
    await callApi(system, management, { method: 'POST', path: runs, body });
    await callApi(system, management, { method: 'GET', path: runs });
    await fetch(`${management.url}/nothing/here/${runId}`);
  }
  async function run(): Promise<void> {
    // On a busy machine a call may exceed its deadline. The next round follows anyway, as with a real job runner.
    for (let runId = 1; !ended; runId += 1) await Promise.allSettled([round(runId), wait(ROUND_INTERVAL_MS)]);
  }
  const running = run();
  return {
    management,
    dispatcher,
    unboundedLabelValues: [
      '127.0.0.',
      '10.1.2.3',
      'nothing/here',
      'wev_',
      'act_',
      'wsu_',
      account.identifier,
      job.name,
      ...subscriptions.map(({ id }) => id),
    ],
    async close() {
      ended = true;
      await running;
      await publisher.close();
      await system.close();
    },
  };
}
