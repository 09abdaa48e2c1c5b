import { expect, test } from '@jest/globals';
import { estimateCost } from '../src/simulate/cost.ts';
import { createSlice } from '../src/simulate/knee.ts';
import { type Load, observe } from '../src/simulate/observe.ts';
import { parseOptions } from '../src/simulate/options.ts';
import { Planner } from '../src/simulate/plans.ts';
import { DEFAULT_SETUP, type Setup } from '../src/simulate/service.ts';
import { readMeasured, timesOf } from '../src/simulate/times.ts';

const measured = readMeasured();
const times = timesOf(measured);

function observeLoad(load: Partial<Extract<Load, { kind: 'open' }>>, setup: Partial<Setup> = {}, seed = 1) {
  return observe({
    times,
    setup: { ...DEFAULT_SETUP, failureShare: 0, ...setup },
    load: { kind: 'open', via: 'queue', ratePerSecond: 500, arrivals: 'poisson', ...load },
    durationMs: 2_000,
    seed,
  });
}

test('every value of measured.json is measured, derived or assumed, and states its origin', () => {
  for (const values of Object.values(measured)) {
    for (const { value, source, from } of Object.values(values)) {
      expect(value).toBeGreaterThan(0);
      expect(['measured', 'derived', 'assumed']).toContain(source);
      expect(from).not.toBe('');
    }
  }
});

test('a seed determines the complete simulation, and another seed gives another one', () => {
  expect(observeLoad({})).toEqual(observeLoad({}));
  expect(observeLoad({}, {}, 2)).not.toEqual(observeLoad({}));
});

test('the simulation delivers every event to each of its webhooks', () => {
  for (const via of ['queue', 'rest'] as const) {
    const { ratePerSecond, acceptedPerSecond } = observeLoad(
      { via, arrivals: 'even' },
      { deliveriesPerEvent: 3 },
    );
    expect(Math.abs(ratePerSecond / 1_500 - 1)).toBeLessThan(0.02);
    if (via === 'rest') expect(Math.abs(acceptedPerSecond / 500 - 1)).toBeLessThan(0.02);
  }
});

test('the simulation names the saturated part: the slots if endpoints are slow, Redis if its core has too many jobs', () => {
  const slowEndpoint = observeLoad(
    { ratePerSecond: 2_000 },
    { dispatchers: 1, concurrency: 50, responseTime: { p50Ms: 400, p99Ms: 400 } },
  );
  expect(slowEndpoint.fullFirst).toBe('slots for events');
  expect(slowEndpoint.use['slots for events']).toBeGreaterThan(0.9);
  // 50 slots are enough for 125 events/s if each is held for the 400 ms of the response, and for 1,000 if it is held for
  // the 50 ms after which an event is committed while others wait.
  expect(slowEndpoint.ratePerSecond).toBeGreaterThan(126);
  expect(slowEndpoint.ratePerSecond).toBeLessThan(1_000);
  const manyDispatchers = { dispatchers: 8, databaseCores: 32, responseTime: { p50Ms: 5, p99Ms: 10 } };
  const slowRedis = { ...times, redis: { ...times.redis, jobMicros: 600 } };
  const load: Load = { kind: 'open', via: 'queue', ratePerSecond: 4_000, arrivals: 'poisson' };
  const observeRedis = (nodes: number) =>
    observe({
      times: slowRedis,
      setup: { ...DEFAULT_SETUP, ...manyDispatchers, shards: nodes, redisNodes: nodes },
      load,
      durationMs: 1_000,
    });
  expect(observeRedis(1).fullFirst).toBe('Redis');
  expect(observeRedis(8).use.Redis).toBeLessThan(0.6);
});

test('createSlice divides the resources of a plan by equal parts, and costs follow from the plan and the prices', () => {
  expect(createSlice({ dispatchers: 70, shards: 8, redisNodes: 8 }, 10)).toMatchObject({
    dispatchers: 7,
    shards: 1,
    redisNodes: 1,
  });
  const plan = new Planner(times).plan(100, 30);
  const free = { vcpu: 0, disk: 0, archive: 0, internet: 0, zones: 0 };
  expect(estimateCost(plan, { ...free, vcpu: 10 }, times)).toMatchObject({ compute: 55, all: 55 });
  // 100 deliveries/s, each with 979 bytes of request and 220 of overhead, for a month (2,628,000 s): 315.1 GB.
  expect(estimateCost(plan, { ...free, internet: 1 }, times).all).toBeCloseTo(315.1, 1);
});

test('the simulation rejects unknown options and invalid numbers', () => {
  expect(() => parseOptions(['--rates-of'])).toThrow("Unknown option '--rates-of'");
  expect(() => parseOptions(['--rate', 'much']).number('rate')).toThrow('--rate must be a number.');
});
