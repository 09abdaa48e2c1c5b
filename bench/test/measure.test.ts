import { expect, test } from '@jest/globals';
import { cpuBetween, machineMsOf, parseProcessStat, readCpu } from '../src/measure/cpu.ts';
import { balance, isBalanced, sumBalances } from '../src/measure/ledger.ts';
import { dueCount, evenSchedule, median, percentile, spreadOf } from '../src/measure/timing.ts';
import { parseDispatcherMetrics, parseRedisInfo } from '../src/measure/usage.ts';

test('percentile returns the measured value of a rank', () => {
  const values = Array.from({ length: 100 }, (_, index) => index + 1);
  expect([0, 0.5, 0.99, 1].map((share) => percentile(values, share))).toEqual([1, 50, 99, 100]);
  expect(spreadOf([3, 1, 2])).toEqual({ min: 1, p50: 2, p99: 3, max: 3 });
  expect(percentile([], 0.5)).toBeNaN();
});

test('the median of an even number of values is the mean of the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 9])).toBe(3);
  expect(median([])).toBeNaN();
});

test('evenSchedule spaces events evenly, and dueCount returns the number of those that are due', () => {
  const schedule = evenSchedule(500, 1_000);
  expect(schedule).toHaveLength(500);
  expect(schedule[250]).toBe(500);
  expect([-1, 0, 1.9, 2, 998, 5_000].map((elapsed) => dueCount(schedule, elapsed))).toEqual([
    0, 1, 1, 2, 500, 500,
  ]);
});

test('the latency of an event that is sent late counts from its intended time', () => {
  const arrivals = { eventIds: ['a', 'b'], paths: ['/1', '/1'], timesMs: [130, 112] };
  const expected = [
    { eventId: 'a', path: '/1', intendedMs: 100 },
    { eventId: 'b', path: '/1', intendedMs: 110 },
  ];
  expect([...balance(expected, arrivals).latenciesMs]).toEqual([30, 2]);
});

test.each([
  ['all arrived once', ['a/1', 'b/1'], {}, true, { delivered: 2, missing: 0, repeated: 0, unknown: 0 }],
  ['one is missing', ['a/1'], {}, false, { missing: 1 }],
  ['one was explained', ['a/1'], { pending: 1 }, true, { missing: 0, explained: 1 }],
  ['one was explained and arrived nevertheless', ['a/1', 'b/1'], { pending: 1 }, false, { missing: -1 }],
  ['one arrived twice', ['a/1', 'a/1', 'b/1'], {}, false, { repeated: 1 }],
  ['one arrived at another endpoint', ['a/1', 'b/2'], {}, false, { missing: 1, unknown: 1 }],
])(
  'a ledger balances only if each delivery is accounted for once: %s',
  (_, arrived, explained, balances, figures) => {
    const expected = ['a', 'b'].map((eventId) => ({ eventId, path: '1', intendedMs: 0 }));
    const result = balance(
      expected,
      {
        eventIds: arrived.map((text) => text.split('/')[0] as string),
        paths: arrived.map((text) => text.split('/')[1] as string),
        timesMs: arrived.map(() => 1),
      },
      explained as Record<string, number>,
    );
    expect(result).toMatchObject(figures);
    expect(isBalanced(result)).toBe(balances);
  },
);

test('the sum of ledgers does not balance if one of them does not', () => {
  const arrivals = (count: number) => ({
    eventIds: Array<string>(count).fill('a'),
    paths: Array<string>(count).fill('/1'),
    timesMs: Array<number>(count).fill(3),
  });
  const expected = [{ eventId: 'a', path: '/1', intendedMs: 1 }];
  const sum = sumBalances([balance(expected, arrivals(1)), balance(expected, arrivals(2))]);
  expect(sum).toMatchObject({ published: 2, delivered: 2, repeated: 1, missing: 0 });
  expect([...sum.latenciesMs]).toEqual([2, 2]);
  expect(isBalanced(sum)).toBe(false);
});

test('a line of /proc/<pid>/stat is parsed whatever the name of the process contains', () => {
  const fields = ['S', '7', ...Array.from({ length: 9 }, () => '0'), '120', '30', '4', '6', '20', '0'];
  expect(parseProcessStat(`42 (a ) b (c) ${fields.join(' ')}`)).toEqual({
    pid: 42,
    parentPid: 7,
    cpuMs: 1_600,
  });
});

test('idle and I/O wait times of /proc/stat do not count as CPU time of the machine', () => {
  expect(machineMsOf('cpu  100 1 50 9999 77 2 3 0 0 0\ncpu0 1 1')).toBe(1_560);
});

test('CPU time of the machine that no measured group of processes used is foreign', () => {
  const before = { groups: { dispatcher: 100 }, machineMs: 1_000 };
  const after = { groups: { dispatcher: 400, redis: 50 }, machineMs: 2_000 };
  expect(cpuBetween(before, after)).toEqual({ groups: { dispatcher: 300, redis: 50 }, foreignMs: 650 });
  expect(cpuBetween(null, after)).toBeNull();
});

(process.platform === 'linux' ? test : test.skip)('readCpu returns the CPU time of a process', () => {
  const before = readCpu({ self: [process.pid] });
  for (const endMs = performance.now() + 60; performance.now() < endMs; ) Math.sqrt(endMs);
  const use = cpuBetween(before, readCpu({ self: [process.pid] }));
  expect(use?.groups.self).toBeGreaterThan(0);
});

test('parseRedisInfo counts all commands of Redis, and calls of scripts separately', () => {
  const info = [
    'used_memory:2048',
    'cmdstat_evalsha:calls=10,usec=5,usec_per_call=0.5',
    'cmdstat_eval_ro:calls=2,usec=5,usec_per_call=0.5',
    'cmdstat_client|setinfo:calls=3,usec=1,usec_per_call=0.3',
    'cmdstat_hset:calls=30,usec=1,usec_per_call=0.1',
  ].join('\r\n');
  expect(parseRedisInfo(info)).toEqual({ commands: 45, scriptCalls: 12, usedBytes: 2_048 });
});

test('memory and event loop delay of a dispatcher are parsed from metrics with and without labels', () => {
  const text = [
    '# TYPE process_resident_memory_bytes gauge',
    'process_resident_memory_bytes{service="dispatcher"} 200000000',
    'nodejs_eventloop_lag_max_seconds 0.0125',
  ].join('\n');
  expect(parseDispatcherMetrics(text)).toEqual({ rssBytes: 200_000_000, loopDelaySeconds: 0.0125 });
});
