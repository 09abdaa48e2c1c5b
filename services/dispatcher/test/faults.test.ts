import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend, openDeliveryQueue, openEventQueue, UnrecoverableError } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('an internal error loses no event, with the queue on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  const event = (runId = 1) => exampleEvent('job.run.started', harness.account.jobs[0] as never, runId);
  const pathsOf = () => harness.receiver.requests.map(({ path }) => path).sort();

  /** Waits until jobs of the queue have failed at least this number of times. */
  async function waitForFaults(port: number, queue: string, atLeast: number): Promise<void> {
    const line = new RegExp(`^runhook_job_errors_total\\{[^}]*queue="${queue}"[^}]*\\} (\\d+)$`, 'm');
    await eventually(async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      expect(Number(line.exec(metrics)?.[1])).toBeGreaterThanOrEqual(atLeast);
    });
  }

  /** Number of faults after which a result has waited for a second: its commit is retried after 125, 250, 500, 1,000 ms or more. */
  const FAULTS_OF_A_SECOND = 5;

  test('events wait for a missing table, and are delivered automatically once it exists again', async () => {
    await harness.subscribe('/one');
    const { port } = await harness.startDispatcher();
    await harness.database.pool.query('ALTER TABLE deliveries RENAME TO deliveries_elsewhere');
    // The first event is attempted and its result retained; the second one is not attempted before its commit.
    await harness.publisher.publish(event(1));
    await waitForFaults(port, 'webhook-deliveries', FAULTS_OF_A_SECOND);
    await harness.publisher.publish(event(2));
    await waitForFaults(port, 'job-run-events', 1);
    expect(harness.receiver.requests).toHaveLength(1);
    await harness.database.pool.query('ALTER TABLE deliveries_elsewhere RENAME TO deliveries');
    await harness.receiver.waitFor(2);
    await eventually(async () => {
      const deliveries = await deliveriesOf(harness.database);
      expect(deliveries.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('the result of a first attempt is retained until the log accepts it, and the request is not sent again', async () => {
    await harness.subscribe('/one');
    const { port } = await harness.startDispatcher();
    await harness.database.pool.query('ALTER TABLE deliveries RENAME COLUMN total_ms TO mislaid');
    await harness.publisher.publish(event(1));
    await waitForFaults(port, 'webhook-deliveries', FAULTS_OF_A_SECOND);
    // An event that arrives while a commit has been rejected for a second is committed before it is sent.
    await harness.publisher.publish(event(2));
    await waitForFaults(port, 'job-run-events', 1);
    expect(harness.receiver.requests).toHaveLength(1);
    await harness.database.pool.query('ALTER TABLE deliveries RENAME COLUMN mislaid TO total_ms');
    await eventually(async () => {
      const delivered = { status: 'delivered', attempt_count: 1 };
      expect(await deliveriesOf(harness.database)).toMatchObject([delivered, delivered]);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('no first attempt begins before the commit of its event once another commit has waited for a second', async () => {
    await harness.subscribe('/one');
    await harness.startDispatcher();
    const lock = await harness.database.pool.connect();
    await lock.query('BEGIN; LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE');
    const countWaitingCommits = async (ageMs: number) => {
      const { rows } = await harness.database.pool.query<{ count: number }>(
        `SELECT count(*)::int FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%age_ms%'
           AND clock_timestamp() - query_start > $1 * interval '1 ms'`,
        [ageMs],
      );
      return rows[0]?.count;
    };
    try {
      await harness.publisher.publish(event(1));
      await harness.receiver.waitFor(1);
      await eventually(async () => expect(await countWaitingCommits(1_000)).toBe(1));
      await harness.publisher.publish(event(2));
      await eventually(async () => expect(await countWaitingCommits(0)).toBe(2));
      expect(harness.receiver.requests).toHaveLength(1);
    } finally {
      await lock.query('COMMIT');
      lock.release();
    }
    await eventually(async () => {
      const deliveries = await deliveriesOf(harness.database);
      expect(deliveries.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('the result of a retry is retained until the log accepts it, and the request is not sent again', async () => {
    await harness.subscribe('/one');
    harness.receiver.respondWith(() => ({ status: harness.receiver.requests.length === 1 ? 500 : 200 }));
    const { port } = await harness.startDispatcher();
    await harness.publisher.publish(event(1));
    await harness.receiver.waitFor(1);
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ attempt_count: 1 }]);
    });
    await harness.database.pool.query('ALTER TABLE attempts RENAME COLUMN error_code TO mislaid');
    await waitForFaults(port, 'webhook-deliveries', 2);
    expect(harness.receiver.requests).toHaveLength(2);
    await harness.database.pool.query('ALTER TABLE attempts RENAME COLUMN mislaid TO error_code');
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered', attempt_count: 2 }]);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test.each([
    { attempt: 'a first attempt', statuses: [200], table: 'deliveries', column: 'total_ms' },
    { attempt: 'a retry', statuses: [500, 200], table: 'attempts', column: 'error_code' },
  ])(
    'a stop waits until the log accepts the result of $attempt, and leaves no job that would repeat its request',
    async ({ statuses, table, column }) => {
      await harness.subscribe('/one');
      const rename = (from: string, to: string) =>
        harness.database.pool.query(`ALTER TABLE ${table} RENAME COLUMN ${from} TO ${to}`);
      harness.receiver.respondWith(async (_request, index) => {
        if (index === statuses.length - 1) await rename(column, 'mislaid');
        return { status: statuses[index] ?? 200 };
      });
      const { port, stop } = await harness.startDispatcher();
      await harness.publisher.publish(event());
      await waitForFaults(port, 'webhook-deliveries', 1);
      const stopped = stop();
      await rename('mislaid', column);
      await stopped;
      const delivered = { status: 'delivered', attempt_count: statuses.length };
      expect(await deliveriesOf(harness.database)).toMatchObject([delivered]);
      const backend = createQueueBackend(harness.queueUrl);
      for (const open of [openEventQueue, openDeliveryQueue]) {
        const queue = open(backend, () => undefined);
        expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
        await queue.close();
      }
    },
  );

  test('the job of a delivery that the record has lost ends, and its event is fanned out again when it is published again', async () => {
    await harness.subscribe('/one');
    let respond = () => {};
    const responded = new Promise<{ status: number }>((resolve) => {
      respond = () => resolve({ status: 500 });
    });
    // The second attempt is in flight when the rows are deleted.
    const responses = [{ status: 500 }, responded, { status: 200 }];
    harness.receiver.respondWith((_, index) => responses[index] ?? { status: 200 });
    await harness.startDispatcher();
    const published = event();
    await harness.publisher.publish(published);
    const [first] = await harness.receiver.waitFor(2);
    for (const table of ['attempts', 'deliveries', 'undispatched_events', 'events'])
      await harness.database.pool.query(`DELETE FROM ${table}`);
    respond();
    const queue = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    await eventually(async () =>
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 }),
    );
    await queue.close();
    expect(harness.receiver.requests).toHaveLength(2);

    const { eventId } = JSON.parse(String(first?.body)) as { eventId: string };
    await harness.publisher.publish({ ...published, eventId });
    await eventually(async () => {
      const deliveries = await deliveriesOf(harness.database);
      expect(deliveries).toMatchObject([{ status: 'delivered', attempt_count: 1 }]);
    });
    const bodies = harness.receiver.requests.map(({ body }) => String(body));
    expect(bodies).toEqual(Array(3).fill(bodies[0]));
  });

  test('an event that is retained as a failed job is delivered when it is published again', async () => {
    await harness.subscribe('/one');
    const queueBackend = createQueueBackend(harness.queueUrl);
    const failing = queueBackend.createWorker(
      JOB_RUN_EVENTS,
      async () => {
        throw new UnrecoverableError('as an older release gave up');
      },
      {},
    );
    const failed = new Promise((resolve) => failing.once('failed', resolve));
    const published = event();
    await harness.publisher.publish(published);
    await failed;
    await failing.close();

    await harness.startDispatcher();
    await harness.publisher.publish(published);
    await harness.receiver.waitFor(1);
    await harness.publisher.publish(published);
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered' }]);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a secret that cannot be decrypted delays only the deliveries of its webhook, and no other delivery is repeated', async () => {
    await harness.subscribe('/healthy');
    const { id } = await harness.subscribe('/unreadable');
    const { prisma } = harness.database;
    const { hmacSecretCiphertext } = await prisma.subscription.findUniqueOrThrow({ where: { id } });
    await prisma.subscription.update({ where: { id }, data: { hmacSecretCiphertext: 'gone:AAAA' } });
    // The healthy delivery is still in flight when the other one has failed.
    let respond = () => {};
    const responded = new Promise<{ status: number }>((resolve) => {
      respond = () => resolve({ status: 200 });
    });
    harness.receiver.respondWith(({ path }) => (path === '/healthy' ? responded : { status: 200 }));
    const { port } = await harness.startDispatcher();
    await harness.publisher.publish(event());
    await harness.receiver.waitFor(1);
    respond();
    await waitForFaults(port, 'webhook-deliveries', 1);
    expect(pathsOf()).toEqual(['/healthy']);

    await prisma.subscription.update({ where: { id }, data: { hmacSecretCiphertext } });
    await harness.receiver.waitFor(({ path }) => path === '/unreadable');
    await eventually(async () => {
      const deliveries = await deliveriesOf(harness.database);
      expect(deliveries.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
      for (const delivery of deliveries)
        expect(await attemptsOf(harness.database, delivery.id)).toHaveLength(1);
    });
    expect(pathsOf()).toEqual(['/healthy', '/unreadable']);
  });
});
