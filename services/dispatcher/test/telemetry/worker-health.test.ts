import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS, ONE_SHARD } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
  type Worker,
} from '@runhook/queue';
import {
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  Lifecycle,
  LOCAL_CLOCK,
  startProbeServer,
} from '@runhook/runtime';
import {
  countDispatchedEvents,
  eventually,
  exampleEvent,
  oneQueueBackend,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { openDispatcher } from '../../src/dispatcher.ts';
import { createDispatcherMetrics } from '../../src/telemetry/metrics.ts';
import { noSpans } from '../../src/telemetry/spans.ts';
import { watchWorkers } from '../../src/telemetry/worker-liveness.ts';
import { startEventWorkers } from '../../src/worker.ts';
import { type Harness, openHarness } from '../harness.ts';

const CONCURRENCY = 4;
/** Timeout for a state to be reported; worker-watch.test.ts tests the exact delays. */
const DETECTION_TIMEOUT = { timeoutMs: 60_000, intervalMs: 100 };

describe.each(oneQueueBackend())('a worker of the queue on $name', (backend) => {
  const closers: (() => Promise<unknown>)[] = [];
  let harness: Harness;
  let queue: EventQueue;
  let proxy: TcpProxy;
  let worker: Worker;
  let origin: string;

  beforeEach(async () => {
    harness = await openHarness(backend);
    closers.push(() => harness.close());
    const directUrl = createQueueBackend(harness.queueUrl);
    queue = openEventQueue(directUrl, () => undefined);
    closers.push(() => queue.close());
    const deliveryQueue: DeliveryQueue = openDeliveryQueue(directUrl, () => undefined);
    closers.push(() => deliveryQueue.close());
    // Only the connection of the worker under test goes through the proxy.
    proxy = await startTcpProxy(harness.queueUrl);

    const logger = createLogger({ service: 'test', level: process.env.TEST_LOG_LEVEL ?? 'silent' });
    const lifecycle = new Lifecycle({ logger });
    const registry = createMetricsRegistry({ service: 'test' });
    const dispatcher = openDispatcher({
      settings: harness.settings,
      lifecycle,
      stopping: new AbortController().signal,
      drainEnd: new AbortController().signal,
      database: harness.database,
      writes: { track: (_kind, work) => work() },
      clock: LOCAL_CLOCK,
      deliveryQueue,
      quarantine: harness.quarantine,
      metrics: createDispatcherMetrics(registry),
      spans: noSpans,
      logger,
    });
    const started = startEventWorkers(dispatcher, queue, {
      backend: createQueueBackend(proxy.url),
      concurrency: CONCURRENCY,
      retentionDays: 30,
      telemetry: undefined,
      onFull: () => undefined,
    });
    started.workers.follow(ONE_SHARD);
    worker = started.workers.workers.get(0) as Worker;
    const emptyPolls = once(worker, 'drained');
    const health = createHealth({ lifecycle, logger });
    const watched = [{ ...started, nextJobs: queue.nextJobs }];
    watchWorkers({ health, lifecycle, logger, registry }, watched, worker, CONCURRENCY);
    const probes = await startProbeServer({
      port: 0,
      host: '127.0.0.1',
      probes: createHttpProbes({ health, registry }),
    });
    lifecycle.onClose('probes', () => probes.close());
    closers.push(() => lifecycle.close('test'));
    closers.push(() => worker.close(true));
    // Closed before the worker, which would wait for a response over a stalled connection.
    closers.push(() => proxy.close());
    origin = `http://127.0.0.1:${probes.port}`;
    await emptyPolls;
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const publish = () =>
    harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never));
  const expectFannedOut = (count: number) =>
    eventually(async () => {
      expect(await countDispatchedEvents(harness.database)).toBe(count);
    }, DETECTION_TIMEOUT);
  const probe = async (path: string) => {
    const response = await fetch(`${origin}${path}`);
    return { status: response.status, report: (await response.json()) as object };
  };
  const isRed = async (error: string) => {
    for (const path of ['/healthz', '/readyz']) {
      const red = { status: 503, report: { ok: false, checks: { workers: { ok: false, error } } } };
      expect(await probe(path)).toEqual(red);
    }
  };
  /** A worker that ends a job requests the next one; the connection must not be cut between the two. */
  const waitUntilIdle = () => Promise.all([once(worker, 'completed'), once(worker, 'drained')]);
  const isGreen = async () => {
    for (const path of ['/healthz', '/readyz']) expect(await probe(path)).toMatchObject({ status: 200 });
  };

  test('is live and ready once it has processed a job and is idle', async () => {
    await publish();
    await expectFannedOut(1);
    await isGreen();
    expect(await queue.nextJob()).toBeNull();
  });

  test('is neither live nor ready once its loop has ended', async () => {
    await isGreen();
    await worker.close();
    await isRed('WORKER_STOPPED');
  });

  test('is neither live nor ready while it is paused, until it is resumed', async () => {
    await worker.pause();
    await eventually(() => isRed('WORKER_STOPPED'), DETECTION_TIMEOUT);
    worker.resume();
    await eventually(isGreen, DETECTION_TIMEOUT);
  });

  test('processes the jobs that waited and is live once an operator resumes its paused queue', async () => {
    const paused = createQueueBackend(harness.queueUrl).createQueue(JOB_RUN_EVENTS);
    closers.push(() => paused.close());
    await paused.pause();
    await publish();
    expect(await eventually(async () => (await queue.nextJob()) ?? Promise.reject())).toMatchObject({
      isPaused: true,
    });
    await paused.resume();
    await expectFannedOut(1);
    await isGreen();
  });

  test('is reported as stuck when it takes no job although one waits, and as live once it works again', async () => {
    const idle = waitUntilIdle();
    await publish();
    await idle;
    proxy.stall();
    await publish();
    await eventually(() => isRed('WORKER_STUCK'), DETECTION_TIMEOUT);
    expect(worker.isRunning()).toBe(true);
    await proxy.cut();
    await proxy.restore();
    await eventually(isGreen, DETECTION_TIMEOUT);
    await expectFannedOut(2);
  });
});
