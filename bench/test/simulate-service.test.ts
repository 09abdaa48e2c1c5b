import { expect, test } from '@jest/globals';
import { costOf } from '../src/simulate/cost.ts';
import { sliceOf } from '../src/simulate/knee.ts';
import { type Load, observe } from '../src/simulate/observe.ts';
import { parseOptions } from '../src/simulate/options.ts';
import { Planner } from '../src/simulate/plans.ts';
import { type Setup, USUAL } from '../src/simulate/service.ts';
import { readMeasured, timesOf } from '../src/simulate/times.ts';

const measured = readMeasured();
const times = timesOf(measured);

function observed(load: Partial<Extract<Load, { kind: 'open' }>>, setup: Partial<Setup> = {}, seed = 1) {
  return observe({
    times,
    setup: { ...USUAL, failureShare: 0, ...setup },
    load: { kind: 'open', how: 'queue', ratePerSecond: 500, arrivals: 'poisson', ...load },
    durationMs: 2_000,
    seed,
  });
}

test('every value has its source and origin', () => {
  for (const values of Object.values(measured)) {
    for (const { value, source, from } of Object.values(values)) {
      expect(value).toBeGreaterThan(0);
      expect(['measured', 'derived', 'assumed']).toContain(source);
      expect(from).not.toBe('');
    }
  }
});

test('a seed determines the complete simulation, and another seed gives another one', () => {
  expect(observed({})).toEqual(observed({}));
  expect(observed({}, {}, 2)).not.toEqual(observed({}));
});

test('every event is delivered to each of its webhooks', () => {
  for (const how of ['queue', 'rest'] as const) {
    const { ratePerSecond, acceptedPerSecond } = observed(
      { how, arrivals: 'even' },
      { deliveriesPerEvent: 3 },
    );
    expect(Math.abs(ratePerSecond / 1_500 - 1)).toBeLessThan(0.02);
    if (how === 'rest') expect(Math.abs(acceptedPerSecond / 500 - 1)).toBeLessThan(0.02);
  }
});

test('the saturated part is named: slots for jobs if endpoints are slow, Redis if one core has too many jobs', () => {
  const slow = observed(
    { ratePerSecond: 2_000 },
    { dispatchers: 1, concurrency: 50, answer: { p50Ms: 400, p99Ms: 400 } },
  );
  expect(slow.fullFirst).toBe('places for jobs');
  // 50 concurrent events of 400 ms each, however many events a job has.
  expect(slow.ratePerSecond).toBeGreaterThan(100);
  expect(slow.ratePerSecond).toBeLessThanOrEqual(126);
  const many = { dispatchers: 8, databaseCores: 32, answer: { p50Ms: 5, p99Ms: 10 } };
  const slowRedis = { ...times, redis: { ...times.redis, jobMicros: 600 } };
  const load: Load = { kind: 'open', how: 'queue', ratePerSecond: 4_000, arrivals: 'poisson' };
  const observeRedis = (nodes: number) =>
    observe({
      times: slowRedis,
      setup: { ...USUAL, ...many, shards: nodes, redisNodes: nodes },
      load,
      durationMs: 1_000,
    });
  expect(observeRedis(1).fullFirst).toBe('Redis');
  expect(observeRedis(8).use.Redis).toBeLessThan(0.6);
});

test('equal parts share all resources, and costs follow from the plan and the prices', () => {
  expect(sliceOf({ dispatchers: 70, shards: 8, redisNodes: 8 }, 10)).toMatchObject({
    dispatchers: 7,
    shards: 1,
    redisNodes: 1,
  });
  const plan = new Planner(times).plan(100, 30);
  const free = { vcpu: 0, disk: 0, archive: 0, internet: 0, zones: 0 };
  expect(costOf(plan, { ...free, vcpu: 10 }, times)).toMatchObject({ compute: 55, all: 55 });
  // 100/s of 979 and 220 bytes, in 2,628,000 s.
  expect(costOf(plan, { ...free, internet: 1 }, times).all).toBeCloseTo(315.1, 1);
});

test('unknown options and invalid numbers are rejected', () => {
  expect(() => parseOptions(['--rates-of'])).toThrow("Unknown option '--rates-of'");
  expect(() => parseOptions(['--rate', 'much']).number('rate')).toThrow('--rate must be a number.');
});
