import { createId, JOB_RUN_EVENTS, type JobRunEvent, type PublishedEvent } from '@runhook/contract';
import { inTransaction } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createQueueBackend,
  type EventQueue,
  openEventQueue,
  type QueueBackendOptions,
} from '@runhook/queue';
import { createTestDatabase, IN_VAIN_MS } from '@runhook/testing';
import { createRelay, type Relay, type RelayOptions } from '../../src/runs/relay.ts';
import { insertEvents } from '../../src/runs/runs.ts';

export interface LoggedLine {
  level: 'info' | 'warn' | 'error';
  message: string;
}

/** An outbox, queues and relays of one test; everything it opened is closed with it. */
export interface RelayBench {
  database: PrismaDatabase;
  databaseUrl: string;
  logged: LoggedLine[];
  /** Commits that many events in one transaction, once `before` resolves; answers them in their order. */
  commit(count: number, before?: () => Promise<void>): Promise<JobRunEvent[]>;
  /** Whose calls wait until the queue answers, unless the options say otherwise. */
  openQueue(queueUrl: string, options?: QueueBackendOptions): EventQueue;
  /** Relays never poll by themselves here, unless they are told to. */
  startRelay(events: Pick<EventQueue, 'add'>, options?: Partial<RelayOptions>): Relay;
  /** What waits in the queue, oldest first. */
  queued(queueUrl: string): Promise<PublishedEvent[]>;
  outboxCount(): Promise<number>;
  close(): Promise<void>;
}

const NEVER_MS = 3_600_000;

export async function openRelayBench(): Promise<RelayBench> {
  const testDatabase = await createTestDatabase();
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
  const closers: (() => Promise<unknown>)[] = [() => testDatabase.drop(), () => database.close()];
  const logged: LoggedLine[] = [];
  const log = (level: LoggedLine['level']) => (_fields: object, message: string) => {
    logged.push({ level, message });
  };
  const logger = { info: log('info'), warn: log('warn'), error: log('error') };
  let made = 0;
  return {
    database,
    databaseUrl: testDatabase.url,
    logged,
    async commit(count, before) {
      const events = Array.from({ length: count }, () => startedEvent(++made));
      await inTransaction(database.pool, async (transaction) => {
        await insertEvents(transaction, events);
        await before?.();
      });
      return events;
    },
    openQueue(queueUrl, options = { callMs: IN_VAIN_MS }) {
      const queue = openEventQueue(createQueueBackend(queueUrl, options), () => undefined);
      closers.push(() => queue.close());
      return queue;
    },
    startRelay(events, options = {}) {
      const relay = createRelay({
        pool: database.pool,
        events,
        logger,
        pollIntervalMs: NEVER_MS,
        ...options,
      });
      closers.push(() => relay.stop());
      return relay;
    },
    async queued(queueUrl) {
      // Every job is a query of its own, and they take turns on a few connections.
      const queue = createQueueBackend(queueUrl, { callMs: 2 * IN_VAIN_MS }).createQueue<PublishedEvent>(
        JOB_RUN_EVENTS,
      );
      queue.on('error', () => undefined);
      try {
        await queue.waitUntilReady();
        // What one account has beyond its burst limit stands behind the others.
        const inLine = await Promise.all(
          (['waiting', 'prioritized'] as const).map((state) => queue.getJobs([state], 0, -1, true)),
        );
        return inLine.flat().map(({ data }) => data);
      } finally {
        await queue.close();
      }
    },
    outboxCount: () => database.prisma.outbox.count(),
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

function startedEvent(number: number): JobRunEvent {
  return {
    eventId: createId('event'),
    eventType: 'job.run.started',
    accountId: 1,
    timestamp: '2026-01-31T23:00:00.000000000Z',
    data: {
      jobId: '1',
      jobName: 'Nightly',
      runId: String(number),
      environmentId: '1',
      environmentName: 'Production',
      engineVersion: '1.9.0',
      projectName: 'Analytics',
      projectId: '1',
      runStatus: 'Running',
      runStatusCode: 3,
      runStatusMessage: 'None',
      runReason: 'None',
      runStartedAt: '2026-01-31T23:00:00Z',
    },
  };
}
