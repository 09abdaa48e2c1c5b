import { expect, test } from '@jest/globals';
import { Batcher } from '../src/simulate/batcher.ts';
import { Random, Simulation } from '../src/simulate/engine.ts';
import { Cores, LogDevice, Semaphore, Servers, Thread } from '../src/simulate/stations.ts';

const SERVICE_MS = 1;

interface WaitingLine {
  cores: number;
  /** Utilization of the cores. */
  load: number;
  serviceMs: (random: Random) => number;
  arrivals?: number;
}

/**
 * Simulates Poisson arrivals at several equal cores; returns the mean wait of an arrival, and the mean number that
 * wait or are served.
 */
function measureWait({ cores, load, serviceMs, arrivals = 50_000 }: WaitingLine) {
  const simulation = new Simulation(7);
  const servers = new Servers(simulation, { cores: new Cores(cores) });
  const random = new Random(11);
  let waitedMs = 0;
  let waiting = 0;
  let waitingMs = 0;
  let lastMs = 0;
  const recordChange = (change: number) => {
    waitingMs += waiting * (simulation.nowMs - lastMs);
    lastMs = simulation.nowMs;
    waiting += change;
  };
  let left = arrivals;
  const arrive = () => {
    const cameMs = simulation.nowMs;
    const ownMs = serviceMs(random);
    recordChange(1);
    servers.run(ownMs * 1_000, () => {
      waitedMs += simulation.nowMs - cameMs - ownMs;
      recordChange(-1);
    });
    left -= 1;
    if (left > 0) simulation.after(random.exponential(SERVICE_MS / (load * cores)), arrive);
  };
  arrive();
  simulation.runUntil(1e9);
  const ratePerMs = arrivals / lastMs;
  return { waitMs: waitedMs / arrivals, inSystem: waitingMs / lastMs, ratePerMs };
}

/** Returns the probability that all `cores` are busy (Erlang C). */
function erlangC(cores: number, load: number): number {
  const offered = cores * load;
  let term = 1;
  let sum = 1;
  for (let index = 1; index < cores; index += 1) {
    term *= offered / index;
    sum += term;
  }
  const last = (term * offered) / cores / (1 - load);
  return last / (sum + last);
}

const exponential = (random: Random) => random.exponential(SERVICE_MS);
const constant = () => SERVICE_MS;
const within = (value: number, of: number) => Math.abs(value / of - 1);

test.each([0.5, 0.8])(
  "the simulated wait is that of the queues M/M/1 and M/D/1, and Little's law holds, at a load of %d",
  (load) => {
    const memoryless = measureWait({ cores: 1, load, serviceMs: exponential });
    expect(within(memoryless.waitMs, (load / (1 - load)) * SERVICE_MS)).toBeLessThan(0.05);
    const fixed = measureWait({ cores: 1, load, serviceMs: constant });
    expect(within(fixed.waitMs, (load / (2 * (1 - load))) * SERVICE_MS)).toBeLessThan(0.05);
    const expectedByLittle = fixed.ratePerMs * (fixed.waitMs + SERVICE_MS);
    expect(within(fixed.inSystem, expectedByLittle)).toBeLessThan(0.001);
  },
);

test('the simulated wait at four cores is that of the queue M/M/4', () => {
  const { waitMs } = measureWait({ cores: 4, load: 0.8, serviceMs: exponential });
  expect(within(waitMs, (erlangC(4, 0.8) * SERVICE_MS) / (4 * 0.2))).toBeLessThan(0.05);
});

test('tasks that arrive while a simulated thread is busy run in one batch in its next iteration', () => {
  const simulation = new Simulation(1);
  const thread = new Thread(simulation, { cores: new Cores(1), iterationMicros: 1_000, wakeMicros: 500 });
  const endedMs: number[] = [];
  const task = () => thread.run(1_000, () => endedMs.push(simulation.nowMs));
  simulation.after(10, task);
  for (const atMs of [11, 12]) simulation.after(atMs, task);
  simulation.runUntil(100);
  expect(endedMs).toEqual([12.5, 14.5, 15.5]);
  expect(thread.busyMs).toBe(5.5);
});

test('simulated threads take turns on the cores, which the work of their helper threads occupies, too', () => {
  const simulation = new Simulation(1);
  const cores = new Cores(1);
  const threads = [0, 1].map(() => new Thread(simulation, { cores, helperShare: 0.5 }));
  const endedMs: number[] = [];
  for (const thread of threads) thread.run(2_000, () => endedMs.push(simulation.nowMs));
  simulation.runUntil(100);
  expect(endedMs).toEqual([2, 5]);
  expect(cores.busyMs).toBe(6);
});

test('a simulated semaphore grants slots in order while one is free, even if a caller takes more than are free', () => {
  const simulation = new Simulation(1);
  const semaphore = new Semaphore(simulation, 3);
  const entered: string[] = [];
  const take = (name: string, weight: number) => semaphore.acquire(weight, () => entered.push(name));
  take('one', 2);
  take('large', 5);
  take('next', 1);
  expect(entered).toEqual(['one', 'large']);
  semaphore.release(2);
  expect(entered).toHaveLength(2);
  semaphore.release(5);
  expect(entered).toEqual(['one', 'large', 'next']);
  simulation.runUntil(10);
  expect(semaphore.usedMs).toBe(10);
});

test('requests during a flush of the simulated write-ahead log share the next flush', () => {
  const simulation = new Simulation(1);
  const log = new LogDevice(simulation, { flushMs: () => 2, bytesPerSecond: 1_000_000 });
  const endedMs: number[] = [];
  for (const atMs of [0, 1, 1.5]) {
    simulation.after(atMs, () => log.flush(1_000, () => endedMs.push(simulation.nowMs)));
  }
  simulation.runUntil(100);
  expect(endedMs).toEqual([3, 7, 7]);
});

/** Returns the start time and size of the batches of items that arrive at these times. */
function collectBatches(arrivalMs: number[], spacingMs: number) {
  const simulation = new Simulation(1);
  const batches: [number, number][] = [];
  const batcher = new Batcher<number>(simulation, {
    ...{ sizeMax: 3, sizeOf: () => 1, slots: 1, spacingMs },
    run: (items, done) => {
      batches.push([simulation.nowMs, items.length]);
      simulation.after(4, done);
    },
  });
  for (const atMs of arrivalMs) simulation.after(atMs, () => batcher.add(atMs));
  simulation.runUntil(100);
  return batches;
}

test('simulated batches start at once when idle, are spaced unless full, and do not exceed the maximum size', () => {
  const batches = collectBatches([5, 6, 7, 20, 21, 21, 21], 10);
  // The first item is a batch without others, two follow after the spacing, and a full batch does not wait for the
  // spacing.
  expect(batches).toEqual([
    [5, 1],
    [15, 2],
    [21, 3],
    [31, 1],
  ]);
});
