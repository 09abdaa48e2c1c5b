import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS } from '@runhook/contract';
import {
  createEventPublisher,
  createQueueBackend,
  type EventPublisher,
  type EventQueue,
  openEventQueue,
} from '@runhook/queue';
import {
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  Lifecycle,
  startProbeServer,
} from '@runhook/runtime';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { createDispatcherMetrics } from '../../src/telemetry/metrics.ts';
import { watchWorkers } from '../../src/telemetry/worker-liveness.ts';
import { type StartedWorker, startEventWorker } from '../../src/worker.ts';

const JOB = {
  id: 1,
  account_id: 1,
  name: 'Nightly',
  project_id: 1,
  project_name: 'Warehouse',
  environment_id: 1,
  environment_name: 'Production',
};
/** Long enough for a worker to see that nothing waits. */
const SETTLED_MS = 500;
const RED_WITHIN = { timeoutMs: 10_000, intervalMs: 100 };

describe.each(queueBackends())('a worker of the queue on $name', (backend) => {
  const closers: (() => Promise<unknown>)[] = [];
  let publisher: EventPublisher;
  let queue: EventQueue;
  let proxy: TcpProxy;
  let started: StartedWorker;
  let origin: string;
  let queueUrl: string;
  let fannedOut = 0;

  beforeEach(async () => {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    queueUrl = await createTestQueueUrl(backend, testDatabase.url);
    publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    queue = openEventQueue(createQueueBackend(queueUrl), () => undefined);
    closers.push(() => queue.close());
    // The worker's way to its queue can be cut off; the others' stays.
    proxy = await startTcpProxy(queueUrl);

    const logger = createLogger({ service: 'test', level: process.env.TEST_LOG_LEVEL ?? 'silent' });
    const registry = createMetricsRegistry({ service: 'test' });
    fannedOut = 0;
    started = startEventWorker({
      backend: createQueueBackend(proxy.url),
      concurrency: 4,
      retentionDays: 30,
      fanOut: async () => {
        fannedOut += 1;
        return { kind: 'fanned_out', deliveries: 0 };
      },
      deliver: async () => ({ kind: 'done' }),
      metrics: createDispatcherMetrics(registry),
      logger,
      telemetry: undefined,
    });
    closers.push(() => started.worker.close(true));
    // Before the worker, which would wait for an answer over a connection that is stalled.
    closers.push(() => proxy.close());
    const lifecycle = new Lifecycle({ logger });
    const health = createHealth({ lifecycle, logger });
    const watched = [{ ...started, firstInLine: queue.firstInLine }];
    watchWorkers({ health, lifecycle, logger, registry }, watched, started.worker, 4);
    const probes = await startProbeServer({
      port: 0,
      host: '127.0.0.1',
      probes: createHttpProbes({ health, registry }),
    });
    lifecycle.onClose('probes', () => probes.close());
    closers.push(() => lifecycle.close('test'));
    origin = `http://127.0.0.1:${probes.port}`;
    await started.worker.waitUntilReady();
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const publish = () => publisher.publish(exampleEvent('job.run.started', JOB));
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
  /** The end of a job asks for the next one: cut off in between, the worker would have taken it unawares. */
  const untilIdle = async () => {
    await eventually(async () => expect(await queue.counts()).toMatchObject({ active: 0, waiting: 0 }));
    await wait(SETTLED_MS);
  };
  const isGreen = async () => {
    for (const path of ['/healthz', '/readyz']) expect(await probe(path)).toMatchObject({ status: 200 });
  };

  test('is alive while it works and while it has nothing to do', async () => {
    await publish();
    await eventually(() => expect(fannedOut).toBe(1));
    await isGreen();
    expect(await queue.firstInLine()).toBeNull();
  });

  test('whose loop has ended is neither alive nor ready', async () => {
    await isGreen();
    await started.worker.close();
    await isRed('WORKER_STOPPED');
  });

  test('that is paused is neither alive nor ready until it is resumed', async () => {
    await started.worker.pause();
    await eventually(() => isRed('WORKER_STOPPED'), RED_WITHIN);
    started.worker.resume();
    await eventually(isGreen, RED_WITHIN);
  });

  test('is alive while somebody has paused its queue, and jobs wait', async () => {
    const paused = createQueueBackend(queueUrl).createQueue(JOB_RUN_EVENTS);
    closers.push(() => paused.close());
    await paused.pause();
    await publish();
    expect(await eventually(async () => (await queue.firstInLine()) ?? Promise.reject())).toMatchObject({
      isPaused: true,
    });
    await paused.resume();
    await eventually(() => expect(fannedOut).toBe(1));
    await isGreen();
  });

  test('that takes nothing although a job waits is known within ten seconds, and so is that it works again', async () => {
    await publish();
    await eventually(() => expect(fannedOut).toBe(1));
    await untilIdle();
    proxy.stall();
    await publish();
    await eventually(() => isRed('WORKER_STUCK'), { timeoutMs: 12_000, intervalMs: 100 });
    expect(started.worker.isRunning()).toBe(true);
    await proxy.cut();
    await proxy.restore();
    await eventually(isGreen, { timeoutMs: 20_000, intervalMs: 100 });
    await eventually(() => expect(fannedOut).toBe(2));
  }, 60_000);
});
