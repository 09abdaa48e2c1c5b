import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, JOB_RUN_EVENTS, RUN_STEP_LIMITS } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';

const STEP = { index: 1, name: 'Invoke dbt with `dbt build`', status: 10, logs: '\u001b[32mDone\u001b[0m' };

describe.each(oneQueueBackend())('on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  const event = (runId: string) => {
    const example = exampleEvent('job.run.completed', harness.account.jobs[0] as never);
    return { ...example, data: { ...example.data, runId } } as typeof example;
  };
  /** Adds a message without the job id of its event, by which the queue would drop it while that event has a job. */
  async function addMessage(message: { eventType: string; [field: string]: unknown }): Promise<void> {
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    await queue.add(message.eventType, message);
    await queue.close();
  }
  const storedSteps = async () =>
    (
      await harness.database.pool.query(
        'SELECT run_id::int, "index", name, status, logs_bytes FROM run_steps ORDER BY run_id, "index"',
      )
    ).rows;

  test('the steps of a message are on record with the run before the event is delivered', async () => {
    await harness.subscribe('/hook');
    const seen: unknown[] = [];
    harness.receiver.respondWith(async () => {
      const { rows } = await harness.database.pool.query('SELECT status FROM runs WHERE id = 7');
      seen.push(...rows, ...(await storedSteps()));
      return { status: 200 };
    });
    const eventId = createId('event');
    const published = { ...event('7'), eventId };
    const long = { ...STEP, index: 2, logs: 'x'.repeat(1_000_000) };
    await harness.publisher.publish(published, { run_steps: [STEP, long] });
    await harness.startDispatcher();
    const [request] = await harness.receiver.waitFor(1);
    await eventually(() => expect(seen).toHaveLength(3));
    expect(seen).toEqual([
      { status: 'Success' },
      { run_id: 7, index: 1, name: STEP.name, status: 'Success', logs_bytes: 13 },
      { run_id: 7, index: 2, name: STEP.name, status: 'Success', logs_bytes: expect.any(Number) },
    ]);
    expect(request?.body).not.toContain('run_steps');

    // The same message again sends nothing, and replaces the steps.
    await addMessage({ ...published, run_steps: [{ ...STEP, name: 'Replaced' }] });
    await eventually(async () =>
      expect(await storedSteps()).toMatchObject([{ name: 'Replaced' }, { index: 2 }]),
    );
    expect(harness.receiver.requests).toHaveLength(1);

    // An older message that is processed late completes the steps, and sets none back.
    const late = { ...published, eventId: createId('event') };
    await addMessage({
      ...late,
      run_steps: [STEP, { ...STEP, index: 3 }].map((step) => ({ ...step, status: 3 })),
    });
    await eventually(async () =>
      expect(await storedSteps()).toMatchObject([
        { name: 'Replaced', status: 'Success' },
        { index: 2, status: 'Success' },
        { index: 3, status: 'Running' },
      ]),
    );
  });

  test('steps that are invalid, too large or over a limit are left out and counted, and their events are delivered', async () => {
    await harness.subscribe('/hook');
    const add = (runId: string, run_steps: unknown) =>
      addMessage({ ...event(runId), eventId: createId('event'), run_steps });
    await add('1', [{ ...STEP, status: 'Fine' }]);
    await add('2', { index: 1 });
    await add('3', [{ ...STEP, logs: 'x'.repeat(RUN_STEP_LIMITS.messageBytesMax) }]);
    await add('4', [{ ...STEP, name: 'n'.repeat(1_000) }]);
    await add('5', null);
    await add('6', []);

    const { port } = await harness.startDispatcher({ runStepsBytesPerAccount: 500 });
    await harness.receiver.waitFor(6);
    expect(await storedSteps()).toEqual([]);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const count = (result: string) =>
      new RegExp(`runhook_message_steps_total\\{[^}]*result="${result}"[^}]*\\} (\\d+)`).exec(metrics)?.[1];
    expect(['stored', 'invalid', 'too_large', 'over_limit', 'rejected'].map(count)).toEqual([
      '0',
      '2',
      '1',
      '1',
      '0',
    ]);
  });

  test('steps of an event that is on record with other data are not stored', async () => {
    await harness.subscribe('/hook');
    await harness.startDispatcher();
    const first = { ...event('7'), eventId: createId('event') };
    await harness.publisher.publish(first, { run_steps: [STEP] });
    await harness.receiver.waitFor(1);
    const conflicting = { ...first, data: { ...first.data, runReason: 'Other' } } as typeof first;
    await addMessage({ ...conflicting, run_steps: [{ ...STEP, name: 'Conflicting' }] });
    await eventually(async () => {
      const { rows } = await harness.database.pool.query('SELECT kind FROM quarantined_items');
      expect(rows).toEqual([{ kind: 'conflict' }]);
    });
    expect(await storedSteps()).toMatchObject([{ name: STEP.name }]);
  });
});
