import { afterEach, describe, expect, test } from '@jest/globals';
import { createTestQueue, eventually, queueBackends } from '@runhook/testing';
import { createQueueBackend, startUpkeep } from '../src/index.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const eventLoopTurn = () => new Promise((resolve) => setImmediate(resolve));

describe.each(queueBackends())('maintenance by a queue on $name', (kind) => {
  async function startTasks(runs: Record<string, () => Promise<void>>): Promise<void> {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const tasks = Object.entries(runs).map(([name, run]) => ({ name, everyMs: 100, run }));
    const upkeep = startUpkeep(backend, tasks, () => undefined);
    closers.push(() => upkeep.close());
  }

  test('runs tasks that are due simultaneously one after another', async () => {
    const counts: Record<string, number> = {};
    let inHand = 0;
    let inHandMost = 0;
    const run = (name: string) => async () => {
      inHand += 1;
      inHandMost = Math.max(inHandMost, inHand);
      for (let turn = 0; turn < 20; turn += 1) await eventLoopTurn();
      inHand -= 1;
      counts[name] = (counts[name] ?? 0) + 1;
    };
    const names = ['first', 'second', 'third', 'fourth'];
    await startTasks(Object.fromEntries(names.map((name) => [name, run(name)])));
    await eventually(() => expect(Math.min(...names.map((name) => counts[name] ?? 0))).toBeGreaterThan(3));
    expect(inHandMost).toBe(1);
  });

  test('continues while a task takes long, and after one that fails', async () => {
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let others = 0;
    let begun = 0;
    await startTasks({
      async long() {
        begun += 1;
        await ended;
      },
      async failing() {
        throw new Error('of this task');
      },
      async other() {
        if (begun > 0) others += 1;
      },
    });
    closers.push(async () => end());
    await eventually(() => expect(others).toBeGreaterThan(2));
    expect(begun).toBe(1);
  });
});
