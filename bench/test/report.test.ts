import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { createRow, type ScenarioResult } from '../src/bench.ts';
import { parseOptions, UsageError } from '../src/options.ts';
import { fillDocument, readDocument } from '../src/report/document.ts';
import { textReport } from '../src/report/table.ts';
import { formatVerdict, targetsOf } from '../src/report/targets.ts';
import { summarise } from '../src/scenarios/profile.ts';
import { ledger, report, scenario } from './report-fixture.ts';

test('a row of the report has the medians of its runs and the sum of their ledgers', () => {
  const measured = [3, 1, 2].map((rate) => ({
    figures: { ratePerSecond: rate },
    balance: { ...ledger, unknown: 0, latenciesMs: new Float64Array() },
  }));
  expect(createRow('x', measured)).toMatchObject({
    figures: { ratePerSecond: 2 },
    ledger: { published: 30, missing: 0 },
  });
});

const computeVerdicts = (scenarios: ScenarioResult[]) =>
  Object.fromEntries(targetsOf(report(scenarios)).map((target) => [target.figure, formatVerdict(target)]));

test('each figure is compared with its target, which is a minimum or a maximum', () => {
  const verdicts = computeVerdicts([
    scenario('max', {
      '1 dispatcher': { ratioToRaw: 1.2, cpuRatioToRaw: 0.95 },
      '2 dispatchers': { ratioToRaw: 0.99 },
    }),
    scenario('list', { 'log, newest': { p50Ms: 21 }, 'webhooks, newest': { p50Ms: 2 } }),
    scenario('neighbours', {
      '0 % do not respond': { p99Ms: 40 },
      '10 % do not respond': { p99Ms: 50 },
      'an account, baseline': { p50Ms: 4, p99Ms: 10 },
      'in parallel with 1,000 changing webhooks': { p50Ms: 9, p99Ms: 15 },
      'in parallel with 15,000 events for an endpoint that hangs': { p99Ms: 14 },
    }),
  ]);
  expect(Object.entries(verdicts).filter(([, value]) => value !== 'not run')).toEqual([
    ['rate of one dispatcher, over raw got of one process', 'pass'],
    ['rate of two dispatchers, over raw got of one process', 'missed'],
    ['CPU of dispatcher, Redis and PostgreSQL per delivery, over raw got', 'stretch'],
    ['p99 in parallel with 1,000 changing webhooks, over baseline', 'pass'],
    ['p50 in parallel with 1,000 changing webhooks, over baseline', 'missed'],
    ['p99 in parallel with 15,000 events for an endpoint that hangs, over baseline', 'pass'],
    ['healthy p99 with 10 % dead endpoints, over none', 'pass'],
    ['slowest page of a log of 10,000,000, ms', 'missed'],
    ['missing or repeated, in all runs', 'stretch'],
  ]);
});

test('the scenarios rest-backlog, events-per-call, first-minute, jit, half-fails and node have targets, node for its slowest row', () => {
  expect(
    computeVerdicts([
      scenario('rest-backlog', {
        'one webhook, cold': { ratioToRaw: 0.8 },
        'one webhook, warm': { ratioToRaw: 0.1 },
        'one webhook, cold, counted': { walBytes: 2_500, statementMs: 0.1 },
      }),
      scenario('events-per-call', { '100 per call': { rateRatioToSingle: 1.3 } }),
      scenario('first-minute', { 'in the first minute': { p99RatioToLater: 1.3 } }),
      scenario('jit', { 'JIT on': { cpuRatioToJitOff: 1.01 } }),
      scenario('half-fails', { '20/s to an endpoint that fails half': { firstP95Ms: 1_900 } }),
      scenario('node', { a: { speed: 1.2 }, b: { speed: 0.96 } }),
    ]),
  ).toMatchObject({
    'REST backlog of one webhook: rate over raw got': 'pass',
    'REST backlog of one webhook: WAL per delivery, bytes': 'missed',
    'REST backlog of one webhook: statement time per delivery, ms': 'stretch',
    'events of POST …/events to the endpoint, 100 per call, over 1 per call': 'pass',
    'p99 at 100/s in the first minute, over after 20,000 events': 'missed',
    'CPU of an event on PostgreSQL 15 with JIT, over without': 'stretch',
    'p95 to the first request of an endpoint that fails half, ms': 'pass',
    'slowest row on this Node, over the oldest supported': 'pass',
  });
});

test('a row of floods is compared with the one without the flood, and the last third of deferred with the first', () => {
  const verdicts = computeVerdicts([
    scenario('floods', {
      '0 waiting': { redisCommandsPerSecond: 1_000 },
      '100,000 waiting': { redisCommandsPerSecond: 1_100, retryLateP95Ms: 2_500 },
      'a burst for an endpoint that takes 200 ms': { scriptCallsPerEvent: 2.1 },
      'with 1,000 subscriptions to a refused port': { p99Ratio: 1.9, dispatcherMb: 401 },
    }),
    scenario('deferred', {
      'first third': { p99Ms: 10, redisMb: 2 },
      'last third': { p99Ms: 14, redisMb: 2 },
      'endpoints respond again': { positionsLateMax: 0 },
    }),
  ]);
  expect(verdicts).toMatchObject({
    'Redis commands/s with 100,000 waiting, over none': 'pass',
    'p95 of the lateness of retries with 100,000 waiting, ms': 'missed',
    'script calls per event of a burst for an endpoint that takes 200 ms': 'stretch',
    'p99 with 1,000 subscriptions to a refused port, over baseline': 'pass',
    'dispatcher with 1,000 subscriptions to a refused port, MB': 'missed',
    'with a million deferred: p99, last third over first': 'missed',
    'with a million deferred: Redis MB, last third over first': 'stretch',
    'with a million deferred: CPU of PostgreSQL, last third over first': 'not run',
    'positions by which a delivery of a lane was late': 'stretch',
  });
});

test('reports over REST are compared with bare Express, raw got and the minimal service, and by the cost of an event', () => {
  const verdicts = computeVerdicts([
    scenario('rest', {
      'minimal service: two INSERTs, a Redis list, raw got, 100/s': { cpuMicros: 1_000 },
      'accepted, no dispatcher': { ratioToExpress: 0.36 },
      'maximum rate': { ratioToExpress: 0.2, ratioToRaw: 0.4, managementMb: 160 },
      '100/s': { p99RatioToRaw: 1.5, cpuMicros: 1_700 },
      'counted, 100/s': { diskBytes: 1_000, walBytes: 3_100 },
    }),
  ]);
  expect(verdicts).toMatchObject({
    'events accepted over REST with the dispatcher stopped, over bare Express': 'pass',
    'from REST to the endpoint, over raw got': 'missed',
    'p99 from call to endpoint at 100/s, over raw got': 'stretch',
    'p99 from call to endpoint at 300/s, over raw got': 'not run',
    'CPU of an event at 100/s, over the minimal service': 'pass',
    'management under load, MB': 'missed',
    'disk for an event with one delivery, bytes': 'pass',
    'WAL of an event with one delivery, bytes': 'missed',
  });
});

test('the report of a quick run has figures and no verdicts', () => {
  const quick = { ...report([scenario('max', { '1 dispatcher': { ratioToRaw: 0.9 } })]), isQuick: true };
  expect(textReport(quick)).toContain('0.90');
  expect(textReport(quick)).not.toMatch(/stretch$|pass$|missed|not run/m);
});

test('the report of a void run states the reasons at its end', () => {
  expect(textReport(report([], ['max: 1 missing']))).toMatch(/VOID.*\n {2}max: 1 missing$/);
});

const figuresBlock = (name: string, text: string) => `<!-- figures: ${name} -->\n${text}\n<!-- end -->\n`;
const max = scenario('max', { '1 dispatcher': { ratePerSecond: 3_456, ratioToRaw: 0.9 } });
const far = scenario('far', { 'response after 5 ms': { p50Ms: 8 } });
const row = '| rate with 1,000,000 events queued, over none | 0.9 | 1 | 0.95 | pass |';
const latency = scenario('latency', { '100 events/s': { ratePerSecond: 100, p50Ms: 4.1, p99Ms: 8 } });
// Measured when the targets had other values.
const outdated = '| rate of two dispatchers, over raw got of one process | 1 | 1.15 | 1.2 | stretch |';
const page = `before\n${['run', 'max', 'far'].map((name) => figuresBlock(name, 'old')).join('between\n')}${figuresBlock('targets', `${row}\n${outdated}`)}after\n`;

test('fillDocument writes the figures of a complete run into their blocks, and changes nothing else', () => {
  const filled = fillDocument(page, report([max, far]));
  expect(filled).toContain('| 1 dispatcher | 3456 |');
  expect(filled).toContain('| response after 5 ms |');
  expect(filled).not.toMatch(/^old$/m);
  expect(filled.match(/Measured on 2026-11-21/g)).toHaveLength(1);
  expect(filled).toMatch(/^before\n[\s\S]*<!-- end -->\nbetween\n[\s\S]*<!-- end -->\nafter\n$/);
});

test('fillDocument keeps the blocks of scenarios that did not run, and dates the others', () => {
  const filled = fillDocument(page, report([max]));
  expect(filled).toContain(figuresBlock('run', 'old'));
  expect(filled).toContain(figuresBlock('far', 'old'));
  expect(filled).toMatch(
    /\| 1 dispatcher \| 3456 \|.*\n\nMeasured on 2026-11-21 in a separate run\.\n\n<!-- end -->/,
  );
  expect(filled).toContain(
    '| rate of one dispatcher, over raw got of one process | 1.05 | 1.3 | 0.90 | missed |',
  );
  expect(filled).toContain(row);
  expect(filled).toContain(
    '| rate of two dispatchers, over raw got of one process | 1.25 | 1.5 | 1.20 | missed |',
  );
  expect(filled).not.toContain('| healthy p99 with 10 % dead endpoints, over none |');
});

test('fillDocument replaces the rows of the summary for the hardware of the run, and keeps those of other hardware', () => {
  const other = '| 8 cores of Other, 32 GB | **Runhook** | 9000 |  |  | 100 |';
  const before = ['| hardware | program |', '|---|---|', '| 2 cores of Test, 8 GB | outdated | 1 |', other];
  const filled = fillDocument(
    figuresBlock('summary', before.join('\n')),
    report([
      max,
      scenario('rest', {
        'maximum rate': { ratePerSecond: 2_307, cpuMicros: 656 },
        '100/s': { p50Ms: 3.28 },
      }),
      latency,
    ]),
  );
  expect(filled).toContain(
    '| 2 cores of Test, 8 GB | **Runhook**, from the REST call to the endpoint | 2307 | 3.28 |  | 656 |',
  );
  expect(filled).toContain('| 2 cores of Test, 8 GB | raw got in one process | 3700 |  |  | 290 |');
  expect(filled).toContain(other);
  expect(filled).not.toContain('outdated');
});

test('a run without other scenarios writes the summary with its date if it has all scenarios of the summary', () => {
  const before = `${figuresBlock('summary', 'old')}${figuresBlock('far', 'old')}`;
  const rest = scenario('rest', { 'maximum rate': { ratePerSecond: 2_307 } });
  const filled = fillDocument(before, report([rest, max, latency]));
  expect(filled).toMatch(/\| 2307 \|[\s\S]*\n\nMeasured on 2026-11-21 in a separate run\.\n\n<!-- end -->/);
  expect(filled).toContain(figuresBlock('far', 'old'));
  for (const scenarios of [
    [rest, max],
    [rest, latency],
    [max, latency],
  ])
    expect(fillDocument(before, report(scenarios))).toBe(before);
});

test('the scenario rest has several tables, each with the rows that have figures for it', () => {
  const parts = ['rest', 'rest-memory', 'rest-counted'].map((name) => figuresBlock(name, 'old')).join('');
  const rest = scenario('rest', {
    idle: { managementMb: 84, dispatcherMb: 75 },
    'maximum rate': { ratePerSecond: 2_307, p50Ms: 19.3, managementMb: 118 },
    '100/s': { ratePerSecond: 100, p50Ms: 3.28, managementMb: 109 },
    'counted, 100/s': { ratePerSecond: 100, statements: 1.29 },
  });
  const filled = fillDocument(parts, report([rest]));
  const rowsOf = (name: string) => Object.keys(readDocument(filled)[name] ?? {});
  expect(rowsOf('rest')).toEqual(['maximum rate', '100/s']);
  expect(rowsOf('rest-memory')).toEqual(['idle', 'maximum rate']);
  expect(rowsOf('rest-counted')).toEqual(['counted, 100/s']);
});

test('a profile charges the CPU time of Node to the package that called it', () => {
  const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 0 });
  const summary = summarise(
    {
      nodes: [
        { id: 1, callFrame: frame('(root)', ''), children: [2, 4, 5] },
        { id: 2, callFrame: frame('flush', 'file:///x/node_modules/got/dist/index.js'), children: [3] },
        { id: 3, callFrame: frame('request', 'node:http') },
        { id: 4, callFrame: frame('(idle)', '') },
        { id: 5, callFrame: frame('onread', 'node:internal/stream_base_commons') },
      ],
      samples: [2, 3, 4, 5],
      timeDeltas: [100, 200, 1_000, 100],
    },
    2,
  );
  expect(summary.busyShare).toBeCloseTo(400 / 1_400);
  expect(summary.parts).toEqual([
    { name: 'got', share: 0.75, microsPerDelivery: 150 },
    { name: "Node's sockets and HTTP", share: 0.25, microsPerDelivery: 50 },
  ]);
});

test('a profile charges the CPU time of a bundle to the modules in it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bundle-'));
  const file = join(folder, 'bundle.js');
  const modules = ['node_modules/.pnpm/pg@8/node_modules/pg/lib/client.js', 'packages/queue/dist/index.js'];
  writeFileSync(file, `import 'x';\n${modules.map((path) => `// ${path}\nf();\n`).join('')}`);
  const frame = (lineNumber: number) => ({ functionName: 'f', url: pathToFileURL(file).href, lineNumber });
  const nodes = [2, 4].map((line, index) => ({ id: index + 1, callFrame: frame(line) }));
  const { parts, hottest } = summarise({ nodes, samples: [1, 2], timeDeltas: [300, 100] }, 1);
  rmSync(folder, { recursive: true });
  expect(parts.map(({ name, share }) => [name, share])).toEqual([
    ['pg', 0.75],
    ['Runhook: packages/queue', 0.25],
  ]);
  expect(hottest.map(({ name }) => name)).toEqual([
    'f pg/lib/client.js:1',
    'f packages/queue/dist/index.js:1',
  ]);
});

test('scenarios are selected by name, and unknown names are rejected', () => {
  expect(parseOptions([])).toMatchObject({ isQuick: false, runs: null });
  expect(parseOptions(['latency', 'max', '--quick', '--runs', '1'])).toMatchObject({
    scenarios: ['max', 'latency'],
    isQuick: true,
    runs: 1,
  });
  expect(() => parseOptions(['fastest'])).toThrow(UsageError);
  expect(() => parseOptions(['--runs', 'many'])).toThrow(UsageError);
  expect(parseOptions(['floods', '--queue', 'postgres'])).toMatchObject({ queue: 'postgres' });
  expect(() => parseOptions(['floods', '--queue', 'kafka'])).toThrow(UsageError);
});
