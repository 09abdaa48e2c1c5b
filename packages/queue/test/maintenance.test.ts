import { afterEach, describe, expect, test } from '@jest/globals';
import { createTestQueue, eventually, queueBackends } from '@runhook/testing';
import { createQueueBackend, startMaintenance } from '../src/index.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

describe.each(queueBackends())('maintenance by a queue on $name', (kind) => {
  async function startTasks(runs: Record<string, () => Promise<void>>): Promise<void> {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const tasks = Object.entries(runs).map(([name, run]) => ({ name, everyMs: 100, run }));
    const maintenance = startMaintenance(backend, tasks, () => undefined);
    closers.push(() => maintenance.close());
  }

  test('runs tasks that are due simultaneously one after another', async () => {
    const counts: Record<string, number> = {};
    let inFlight = 0;
    let inFlightMax = 0;
    const run = (name: string) => async () => {
      inFlight += 1;
      inFlightMax = Math.max(inFlightMax, inFlight);
      for (let iteration = 0; iteration < 20; iteration += 1) await nextIteration();
      inFlight -= 1;
      counts[name] = (counts[name] ?? 0) + 1;
    };
    const names = ['first', 'second', 'third', 'fourth'];
    await startTasks(Object.fromEntries(names.map((name) => [name, run(name)])));
    await eventually(() => expect(Math.min(...names.map((name) => counts[name] ?? 0))).toBeGreaterThan(3));
    expect(inFlightMax).toBe(1);
  });

  test('continues while a task takes long, and after one that fails', async () => {
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let others = 0;
    let startedCount = 0;
    await startTasks({
      async long() {
        startedCount += 1;
        await ended;
      },
      async failing() {
        throw new Error('of this task');
      },
      async other() {
        if (startedCount > 0) others += 1;
      },
    });
    closers.push(async () => end());
    await eventually(() => expect(others).toBeGreaterThan(2));
    expect(startedCount).toBe(1);
  });
});
