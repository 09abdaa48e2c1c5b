import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { EventType } from '@runhook/contract';
import { createEventPublisher } from '@runhook/publisher';
import { eventually, exampleEvent } from '@runhook/testing';
import { FAILING, FLAKY, HEALTHY, runKey } from './endpoint.ts';
import { openReleaseClient, type ReleaseClient } from './release-client.ts';
import type { Stores } from './servers.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;

/** Publishes events to a separate account with subscriptions that are monitored during a fault. */
export interface Load {
  accountId: number;
  subscriptions: { healthy: string; flaky: string; failing: string; leaving: string };
  /** Time when the caller got the success response, in milliseconds since the epoch, by run and event type. */
  accepted: Map<string, number>;
  /** Events that were published directly onto the queue. */
  direct: Set<string>;
  /** Calls that failed. Their events may be delivered or not, because nothing was acknowledged. */
  failedCalls: number;
  /**
   * Time of the first request that makes the leaving subscription inactive, if it had to be repeated because the record lacks it;
   * null otherwise. It may have been committed on a lost server, with or without a response.
   */
  lostDeactivationMs: number | null;
  /**
   * Makes the leaving subscription inactive over REST, and retries until it is.
   * @param isRepeat the change may already be recorded, and is then not repeated
   */
  deactivateLeaving(isRepeat?: boolean): Promise<void>;
  /** Publishes events of separate runs directly onto the queue at a URL, and resolves when they are accepted. */
  publishTo(queueUrl: string, count: number): Promise<void>;
  /** Resolves when every call has ended. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  /** Also publishes directly onto the queue; otherwise all events use REST. */
  publishesDirectly: boolean;
  /** Runhook numbers the runs, and failed calls are repeated with the same Idempotency-Key until they get a response. */
  repeatsCalls: boolean;
  /** Seeds and publishes with the code of another release; with that of this checkout when omitted. `stop` closes it. */
  client?: ReleaseClient;
  /** Milliseconds between two runs; 100 when omitted, about 25 events a second. */
  runIntervalMs?: number | undefined;
}

/** Interval between two runs, each of which has two or three events. */
const RUN_INTERVAL_MS = 100;
/** Timeout of a call, which may be made to a killed process. */
const CALL_TIMEOUT_MS = 30_000;
/** Number of reported runs of which one has artifacts; every second run may be published instead. */
const ARTIFACTS_INTERVAL = 4;
/** First run id of events that are published separately. */
const FIRST_CONCURRENT_RUN = 1_000_001;

/** Starts the load: about 25 events per second, half of them over REST. */
export async function startLoad(
  world: World,
  {
    publishesDirectly,
    repeatsCalls,
    client = openReleaseClient(world),
    runIntervalMs = RUN_INTERVAL_MS,
  }: LoadOptions,
): Promise<Load> {
  const account = await client.seedAccount();
  const token = await client.createToken(account.id);
  const subscriptions = await subscribeAll(world, client, account.id);
  const job = account.jobs[0] as (typeof account.jobs)[number];
  const accepted = new Map<string, number>();
  const direct = new Set<string>();
  const calls = new Set<Promise<void>>();
  let failedCalls = 0;
  let deactivatedAtMs: number | null = null;
  let lostDeactivationMs: number | null = null;
  let stopped = false;

  /** Resolves with the run id once the caller got the success response, or with null. */
  async function recordAccepted(eventType: EventType, call: Promise<number>): Promise<number | null> {
    try {
      const runId = await call;
      accepted.set(runKey(runId, eventType), Date.now());
      return runId;
    } catch {
      failedCalls += 1;
      return null;
    }
  }

  async function report(path: string, body: object): Promise<number> {
    const call = { method: 'POST', path: `/v2/accounts/${account.id}/runs/${path}`, body };
    if (!repeatsCalls) return await callManagement(world, token, call);
    const idempotencyKey = randomUUID();
    return await eventually(() => callManagement(world, token, { ...call, idempotencyKey }), {
      intervalMs: 200,
    });
  }

  async function reportRun(number: number): Promise<void> {
    const runNumber = repeatsCalls ? {} : { run_id: number };
    const runId = await recordAccepted(
      'job.run.started',
      report('', { job_id: job.id, engine_version: '1.9.2', ...runNumber }),
    );
    if (runId === null) return;
    const finish = { status: 'errored', status_message: 'Model orders failed' };
    if ((await recordAccepted('job.run.errored', report(`${runId}/finish/`, finish))) === null) return;
    if (Math.floor(runId / 2) % ARTIFACTS_INTERVAL === 0)
      await recordAccepted('job.run.completed', report(`${runId}/artifacts/`, {}));
  }

  async function publishRun(runId: number): Promise<void> {
    for (const eventType of ['job.run.started', 'job.run.errored'] as const) {
      direct.add(runKey(runId, eventType));
      await recordAccepted(
        eventType,
        client.publish(exampleEvent(eventType, job, runId)).then(() => runId),
      );
    }
  }

  async function run(): Promise<void> {
    for (let runId = 1; !stopped; runId += 1) {
      const goesDirectly = publishesDirectly && !repeatsCalls && runId % 2 === 0;
      // Not awaited, so that the load does not slow down with the service.
      const call = (goesDirectly ? publishRun : reportRun)(runId).finally(() => calls.delete(call));
      calls.add(call);
      await wait(runIntervalMs);
    }
  }

  const running = run();
  return {
    accountId: account.id,
    subscriptions,
    accepted,
    direct,
    get failedCalls() {
      return failedCalls;
    },
    get lostDeactivationMs() {
      return lostDeactivationMs;
    },
    deactivateLeaving: async (isRepeat = false) => {
      const path = `/v3/accounts/${account.id}/webhooks/subscription/${subscriptions.leaving}`;
      const body = {
        name: 'leaving',
        event_types: ['job.run.started', 'job.run.completed', 'job.run.errored'],
        client_url: `${world.endpoint.url}${FAILING}/leaving`,
        active: false,
      };
      let wasSent = isRepeat;
      await eventually(
        async () => {
          // A second change would set a later time, and events that were fanned out in between would count as missing.
          if (wasSent && !(await isActive(world, subscriptions.leaving))) return;
          wasSent = true;
          lostDeactivationMs = deactivatedAtMs;
          deactivatedAtMs ??= Date.now();
          await callManagement(world, token, { method: 'PUT', path, body });
        },
        { intervalMs: 200 },
      );
    },
    publishTo: async (queueUrl, count) => {
      const publisher = createEventPublisher({ queueUrl: queueUrl });
      try {
        for (let runId = FIRST_CONCURRENT_RUN; runId < FIRST_CONCURRENT_RUN + count; runId += 1) {
          const event = exampleEvent('job.run.started', job, runId);
          direct.add(runKey(runId, event.eventType));
          await recordAccepted(
            event.eventType,
            publisher.publish(event).then(() => runId),
          );
        }
      } finally {
        await publisher.close();
      }
    },
    stop: async () => {
      stopped = true;
      await running;
      await Promise.all(calls);
      await client.close();
    },
  };
}

/** Creates one subscription for each kind of endpoint, and one that is made inactive. */
async function subscribeAll(
  world: World,
  client: ReleaseClient,
  accountId: number,
): Promise<Load['subscriptions']> {
  const subscribe = async (path: string, eventTypes?: EventType[]) => {
    const clientUrl = `${world.endpoint.url}${path}`;
    return await client.subscribe({
      accountId,
      clientUrl,
      name: path,
      ...(eventTypes ? { eventTypes } : {}),
    });
  };
  return {
    healthy: await subscribe(HEALTHY),
    flaky: await subscribe(FLAKY),
    // Gets few events, because each of their deliveries is attempted several times.
    failing: await subscribe(FAILING, ['job.run.completed']),
    leaving: await subscribe(`${FAILING}/leaving`),
  };
}

async function isActive({ database }: World, subscriptionId: string): Promise<boolean> {
  const sql = 'SELECT active FROM subscriptions WHERE id = $1';
  const { rows } = await database.pool.query<{ active: boolean }>(sql, [subscriptionId]);
  return rows[0]?.active ?? false;
}

/** Resolves with the `id` in the response. Throws unless its status is 2xx. */
async function callManagement(
  world: World,
  token: string,
  {
    method,
    path,
    body,
    idempotencyKey,
  }: { method: string; path: string; body: object; idempotencyKey?: string },
): Promise<number> {
  const headers = {
    authorization: `Token ${token}`,
    'content-type': 'application/json',
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  };
  const response = await fetch(`${world.management.url}/api${path}`, {
    method,
    headers,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  const json = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${json}`);
  return (JSON.parse(json) as { data: { id: number } }).data.id;
}
