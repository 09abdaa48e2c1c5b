import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, JOB_RUN_EVENTS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { addQuarantined, listQuarantined, type Pool } from '@runhook/database';
import { createQueueBackend, openShardAdmin, UnrecoverableError } from '@runhook/queue';
import {
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  seedAccount,
  seedSubscription,
  type TestAccount,
} from '@runhook/testing';
import { releaseQuarantinedItems } from '../../src/admin/quarantine.ts';
import { type DeliveryFields, insertAttempt, insertDelivery } from '../deliveries/delivery-rows.ts';
import { type CommandLine, openCommandLine } from './command-line.ts';

describe.each(queueBackends())('the operator commands, with the queue on $name', (backend) => {
  let commandLine: CommandLine;
  let account: TestAccount;
  let accountId: number;
  let subscriptionId: string;
  let env: { QUEUE_URL: string };

  beforeEach(async () => {
    commandLine = await openCommandLine();
    account = await seedAccount(commandLine.database);
    accountId = account.id;
    const clientUrl = 'https://receiver.example.com/hook';
    ({ id: subscriptionId } = await seedSubscription(commandLine.database, { accountId, clientUrl }));
    env = { QUEUE_URL: await createTestQueueUrl(backend, commandLine.env.DATABASE_URL) };
  });

  afterEach(() => commandLine.close());

  const json = (command: string) => commandLine.jsonInProcess(command, { env });
  const failure = (command: string) => commandLine.failure(command, { env });
  const queueOf = (name: string) => createQueueBackend(env.QUEUE_URL).createQueue<object>(name);
  const insert = (fields: Partial<DeliveryFields>) =>
    insertDelivery(commandLine.database, { subscriptionId, accountId, ...fields });

  /** Adds messages that are not events to the queue, and fails their jobs as a dispatcher does. */
  async function failJob(messages: Record<string, object>): Promise<void> {
    const queue = queueOf(JOB_RUN_EVENTS);
    for (const [jobId, data] of Object.entries(messages)) await queue.add('nonsense', data, { jobId });
    const worker = createQueueBackend(env.QUEUE_URL).createWorker(
      JOB_RUN_EVENTS,
      async () => {
        throw new UnrecoverableError('eventType is missing');
      },
      {},
    );
    worker.on('error', () => undefined);
    await eventually(async () =>
      expect((await queue.getJobCounts('failed')).failed).toBe(Object.keys(messages).length),
    );
    await worker.close();
    await queue.close();
  }

  test('show waiting and failed jobs, and retry the failed jobs whose data is complete', async () => {
    await failJob({ odd: { hello: 1 }, long: { characters: 90_000, beginning: '{"hel' } });
    expect(await json('queue stats')).toMatchObject({
      backend: backend.name,
      eviction_policy: null,
      queues: [
        {
          name: JOB_RUN_EVENTS,
          waiting: 0,
          active: 0,
          failed: 2,
          oldest_added_at: null,
          paused: false,
          shards: [{ shard: 0, draining: false, waiting: 0, active: 0, delayed: 0, failed: 2 }],
        },
        { name: WEBHOOK_DELIVERIES, waiting: 0, failed: 0 },
      ],
    });
    const listed = await json('queue failed');
    expect(listed).toHaveLength(2);
    expect(listed).toContainEqual({
      queue: JOB_RUN_EVENTS,
      id: 'odd',
      name: 'nonsense',
      reason: 'eventType is missing',
      data: { hello: 1 },
      failed_at: expect.stringMatching(/^\d{4}-.*Z$/),
      is_truncated: false,
    });

    const { code, stdout } = await commandLine.program('queue retry --all --json', { env });
    expect([code, JSON.parse(stdout)]).toEqual([1, { retried: ['odd'], remaining: ['long'] }]);
    expect((await json('queue stats')).queues[0]).toMatchObject({
      waiting: 1,
      failed: 1,
      oldest_added_at: expect.stringMatching(/Z$/),
    });
    expect((await commandLine.run('queue failed', { env })).stdout).toMatch(
      /^ID .*REASON\nlong .*eventType is missing/,
    );
  });

  test('list items that were set aside with their reasons, and queue them again or remove them', async () => {
    const pending = await insert({ status: 'pending' });
    const event = {
      ...exampleEvent('job.run.started', account.jobs[0] as never),
      eventId: createId('event'),
    };
    const item = { accountId, reason: '22P05: unsupported Unicode escape sequence' };
    await addQuarantined(commandLine.database.pool, [
      { ...item, kind: 'event', key: event.eventId, message: event },
      { ...item, kind: 'delivery', key: pending.id },
      { ...item, kind: 'lane', key: subscriptionId },
    ]);
    expect(await json('queue failed')).toContainEqual({
      queue: 'quarantined',
      id: event.eventId,
      name: 'event',
      account_id: accountId,
      reason: item.reason,
      data: JSON.parse(JSON.stringify(event)),
      failed_at: expect.stringMatching(/Z$/),
      is_truncated: false,
    });
    expect((await commandLine.run('queue failed', { env })).stdout).toMatch(
      new RegExp(`^${pending.id} .*quarantined.*delivery .*22P05`, 'm'),
    );

    const events = [event.eventId, subscriptionId];
    const { retried, remaining } = await json(`queue retry --id ${events.join(' --id ')}`);
    expect([retried.sort(), remaining]).toEqual([events.sort(), []]);
    const queue = queueOf(JOB_RUN_EVENTS);
    expect((await queue.getJobs()).map(({ data }) => data)).toEqual([JSON.parse(JSON.stringify(event))]);
    await queue.close();

    expect(await json(`queue remove --id ${pending.id}`)).toEqual({ removed: [pending.id], unknown: [] });
    const { delivery } = await json(`delivery show --id ${pending.id}`);
    expect(delivery).toMatchObject({ status: 'cancelled' });
    expect(await json('queue failed')).toEqual([]);
    const { code, stdout } = await commandLine.run('queue remove --id odd --json', { env });
    expect([code, JSON.parse(stdout)]).toEqual([1, { removed: [], unknown: ['odd'] }]);
  });

  test('retry set-aside events under the new ids in their messages, but a conflict only if its id is given', async () => {
    const messages = Array.from({ length: 120 }, () => ({
      ...exampleEvent('job.run.started', account.jobs[0] as never),
      eventId: createId('event'),
    }));
    const item = { accountId, reason: 'eventId carries a time more than a day ahead' };
    await addQuarantined(commandLine.database.pool, [
      ...messages.map((message, index) => ({
        ...item,
        kind: 'out_of_range' as const,
        key: `late-${index}`,
        message,
      })),
      {
        ...item,
        kind: 'conflict',
        key: 'conflict',
        message: exampleEvent('job.run.started', account.jobs[0] as never),
      },
    ]);
    const { code, stdout } = await commandLine.program('queue retry --all --json', { env });
    const { retried, remaining } = JSON.parse(stdout) as { retried: string[]; remaining: string[] };
    expect([code, retried.length, remaining]).toEqual([1, 120, ['conflict']]);
    const queue = queueOf(JOB_RUN_EVENTS);
    const queued = await queue.getJobs('waiting');
    await queue.close();
    expect(new Set(queued.map(({ data }) => (data as { eventId: string }).eventId))).toEqual(
      new Set(messages.map(({ eventId }) => eventId)),
    );
    expect(await json('queue retry --id conflict')).toEqual({ retried: ['conflict'], remaining: [] });
    expect(await json('queue failed')).toEqual([]);
  });

  test('keep an event that is rejected again while it is released', async () => {
    const { pool } = commandLine.database;
    const message = {
      ...exampleEvent('job.run.started', account.jobs[0] as never),
      eventId: createId('event'),
    };
    const item = { accountId, kind: 'event', key: message.eventId, message } as const;
    await addQuarantined(pool, [{ ...item, reason: 'first' }]);
    /** A dispatcher rejects the event after it was added to the queue and before its row is deleted. */
    const rejectingPool = {
      query: async (query: { text: string }) => {
        if (/^\s*DELETE/.test(query.text)) await addQuarantined(pool, [{ ...item, reason: 'again' }]);
        return await pool.query(query);
      },
    } as unknown as Pool;
    await releaseQuarantinedItems({ pool: rejectingPool, queueUrl: env.QUEUE_URL }, [message.eventId]);
    expect(await listQuarantined(pool, {})).toMatchObject([
      { key: message.eventId, reason: 'again', message: JSON.parse(JSON.stringify(message)) },
    ]);
    expect(await json(`queue remove --id ${message.eventId}`)).toMatchObject({ unknown: [] });
    expect(await listQuarantined(pool, {})).toEqual([]);
  });

  test('show a delivery by its id alone, redeliver it, and cancel it', async () => {
    const { id, day } = await insert({ status: 'failed', attemptCount: 1, errorCode: 'timeout' });
    await insertAttempt(commandLine.database, { day, deliveryId: id, number: 1 });
    expect(await json(`delivery show --id ${id}`)).toMatchObject({
      delivery: { id, subscription_id: subscriptionId, account_id: String(accountId), status: 'failed' },
      attempts: [{ number: 1, http_status_code: '200' }],
    });

    expect((await json(`delivery redeliver --id ${id}`)).delivery.status).toBe('pending');
    const queue = queueOf(WEBHOOK_DELIVERIES);
    expect((await queue.getJobs()).map(({ data }) => data)).toEqual([
      { deliveryId: id, cycle: 1, accountId },
    ]);
    await queue.close();
    expect(await failure(`delivery redeliver --id ${id}`)).toMatchObject({ exitCode: 1, code: 'conflict' });

    const { delivery } = await json(`delivery cancel --id ${id}`);
    expect(delivery).toMatchObject({ status: 'cancelled', reason: 'An operator cancelled the delivery.' });
    expect(await failure(`delivery cancel --id ${id}`)).toMatchObject({
      code: 'conflict',
      message: '--id: the delivery is cancelled, not pending.',
    });
    expect((await commandLine.run(`delivery show --id ${id}`, { env })).stdout).toMatch(
      /^state {9}cancelled: An/m,
    );
  });

  test('show operators which rule blocked a request', async () => {
    const { id, day } = await insert({ status: 'failed', attemptCount: 1, errorCode: 'dns_failed' });
    const columns = { http_status_code: 502, error_code: 'dns_failed', duration_ms: 12 };
    await insertAttempt(commandLine.database, { day, deliveryId: id, number: 1, columns });
    expect(await json(`delivery show --id ${id}`)).toMatchObject({
      delivery: { error_code: 'dns_failed' },
      attempts: [{ error: { code: 'dns_failed' }, duration_ms: 12 }],
    });
  });

  test('report missing deliveries and settings, and an unavailable queue', async () => {
    const id = createId('delivery', Date.now());
    expect(await failure(`delivery show --id ${id}`)).toMatchObject({ exitCode: 1, code: 'not_found' });
    expect(await failure('delivery show --id 7')).toMatchObject({ exitCode: 2, code: 'usage' });
    expect(await failure('queue retry')).toMatchObject({ exitCode: 2, code: 'usage' });
    expect(await commandLine.failure('queue stats')).toMatchObject({
      code: 'environment',
      message: expect.stringContaining('QUEUE_URL is not set'),
    });
    const unreachableQueue = { env: { QUEUE_URL: 'redis://127.0.0.1:1' } };
    expect(await commandLine.failure('queue stats', unreachableQueue)).toMatchObject({
      exitCode: 1,
      code: 'queue_unavailable',
    });
  });
});

const describeOnRedis = process.env.TEST_REDIS_URL === undefined ? describe.skip : describe;

describeOnRedis('the operator commands, with a sharded queue', () => {
  test('show the jobs of each shard, and failed jobs of a shard that was removed', async () => {
    const commandLine = await openCommandLine();
    const env = { QUEUE_URL: await createTestQueueUrl({ name: 'Redis' }, commandLine.env.DATABASE_URL) };
    const backend = createQueueBackend(env.QUEUE_URL);
    const shardAdmin = openShardAdmin(backend, () => undefined, 0);
    const queue = backend.createQueue<object>(JOB_RUN_EVENTS, undefined, 1);
    try {
      await shardAdmin.spread(2);
      await queue.add('nonsense', {}, { jobId: 'odd' });
      const { stdout } = await commandLine.run('queue stats', { env });
      expect(stdout).toMatch(
        /^SHARD +QUEUE.*\n0 +job-run-events +0.*\n0 +web.*\n1 +job-run-events +1 .*\n1 +web/m,
      );
      await shardAdmin.spread(1);
      expect((await commandLine.run('queue stats', { env })).stdout).toMatch(
        /^1 \(draining\) +job-run-events +1 /m,
      );
      const worker = backend.createWorker(
        JOB_RUN_EVENTS,
        async () => {
          throw new UnrecoverableError('eventType is missing');
        },
        {},
        1,
      );
      worker.on('error', () => undefined);
      await eventually(async () => expect((await queue.getJobCounts('failed')).failed).toBe(1));
      await worker.close();
      await shardAdmin.reconcile();
      expect(await shardAdmin.refresh()).toMatchObject({ draining: [] });
      expect(await commandLine.jsonInProcess('queue failed', { env })).toMatchObject([{ id: 'odd' }]);
    } finally {
      await queue.close();
      await shardAdmin.close();
      await commandLine.close();
    }
  });
});
