import type { Figures, Row, ScenarioResult } from '../bench.ts';
import { figureText } from './table.ts';
import type { Report } from './targets.ts';
import { formatStretchGoal, formatVerdict, targetsOf } from './targets.ts';

const PROCESSES = ['management', 'dispatcher', 'redis', 'postgres'];

/** Columns of the table in each part of docs/performance.md; `bench/results/latest.json` has all figures. */
const COLUMNS: Record<string, string[]> = {
  rest: ['ratePerSecond', 'p50Ms', 'p99Ms', 'cpuMicros', ...PROCESSES.map(cpuOf)],
  'rest-memory': ['managementMb', 'dispatcherMb'],
  'rest-counted': ['statements', 'commits', 'redisCommands', 'walBytes', 'diskBytes'],
  'rest-backlog': ['ratePerSecond', 'ratioToRaw', 'statements', 'statementMs', 'walBytes', 'diskBytes'],
  'events-per-call': ['ratePerSecond', 'rateRatioToSingle', 'p99Ms'],
  'first-minute': ['p50Ms', 'p99Ms', 'p99RatioToLater', 'maxMs'],
  'half-fails': ['firstP50Ms', 'firstP95Ms', 'sentOncePercent'],
  jit: ['p50Ms', 'p99Ms', 'cpuMicros', 'cpuRatioToJitOff'],
  max: ['ratePerSecond', 'ratioToRaw', 'cpuMicros', ...['dispatcher', 'redis', 'postgres'].map(cpuOf)],
  latency: ['ratePerSecond', 'p50Ms', 'p99Ms', ...['dispatcher', 'redis', 'postgres'].map(cpuOf)],
  far: ['ratePerSecond', 'p50Ms', 'p99Ms'],
  'fan-out': ['ratePerSecond', 'ratioToRaw', 'cpuMicros'],
  neighbours: ['p50Ms', 'p99Ms', 'stillPending'],
  floods: ['p50Ms', 'p99Ms', 'p99Ratio', 'retryLateP95Ms', 'dispatcherMb', 'redisCommandsPerSecond'],
  deferred: [
    'ratePerSecond',
    'p50Ms',
    'p99Ms',
    'dispatcherMb',
    'postgresPercent',
    'seconds',
    'positionsLateMax',
  ],
  backlog: ['ratePerSecond', 'ratioToRaw', 'redisBytes'],
  list: ['p50Ms', 'p99Ms'],
  'postgres-queue': ['ratePerSecond', 'p50Ms', 'p99Ms'],
  shards: ['ratePerSecond', 'cpuMicros', 'dispatcherPercent', 'redisPercent', 'redisConnections'],
  soak: ['p50Ms', 'p99Ms', 'managementMb', 'dispatcherMb', 'managementRatio', 'dispatcherRatio'],
};

/** Rows that are only in the JSON, by part. */
const OMITTED_ROWS: Record<string, RegExp> = {
  rest: /^raw got behind|^minimal service.*maximum rate$|^(50|300)\/s, queue in PostgreSQL$/,
  'rest-memory': /^accepted|^\d/,
  floods: /^1,000 waiting$|^a burst|5,000 subscriptions/,
  deferred: /^second third$/,
};

function cpuOf(process: string): string {
  return `${process}CpuMicros`;
}

const TITLES: Record<string, string> = {
  ratePerSecond: 'per second',
  ratioToRaw: 'over raw got',
  cpuMicros: 'CPU per delivery, µs',
  dispatcherCpuMicros: 'dispatcher, µs',
  redisCpuMicros: 'Redis, µs',
  postgresCpuMicros: 'PostgreSQL, µs',
  managementCpuMicros: 'management, µs',
  publisherCpuMicros: 'publisher, µs',
  managementMb: 'management, MB',
  managementRatio: 'management over minutes 5 to 10',
  dispatcherRatio: 'dispatcher over minutes 5 to 10',
  statements: 'statements per event',
  statementMs: 'statement time per event, ms',
  commits: 'commits per event',
  redisCommands: 'Redis commands per event',
  walBytes: 'WAL per event, bytes',
  diskBytes: 'disk per event, bytes',
  rateRatioToSingle: 'over 1 per call',
  p99RatioToLater: 'p99 over p99 after 20,000 events',
  firstP50Ms: 'p50 to the first request, ms',
  firstP95Ms: 'p95 to the first request, ms',
  sentOncePercent: 'sent at least once, %',
  cpuRatioToJitOff: 'CPU over JIT off',
  oldestNode: 'on the oldest supported Node',
  thisNode: 'on this Node',
  speed: 'speed over the oldest',
  p50Ms: 'p50, ms',
  p99Ms: 'p99, ms',
  maxMs: 'max, ms',
  stillPending: 'still pending',
  redisBytes: 'Redis bytes',
  p99Ratio: 'p99 over baseline',
  retryLateP95Ms: 'lateness of retries, p95, ms',
  dispatcherMb: 'dispatcher, MB',
  redisCommandsPerSecond: 'Redis commands/s',
  postgresPercent: 'PostgreSQL, % of a core',
  dispatcherPercent: 'dispatcher, % of a core',
  redisPercent: 'Redis, % of a core',
  redisConnections: 'connections to Redis',
  seconds: 'drained after, s',
  positionsLateMax: 'positions late, max',
  lastOldUrlMs: 'last request to the old URL after, ms',
  oldUrlRequestsAfterChange: 'requests to the old URL after the change',
  newUrlRequests: 'requests to the new URL',
  notSent: 'not sent',
  percent: '%',
};

const PART = /(<!-- figures: ([a-z-]+) -->\n)([\s\S]*?)(<!-- end -->)/g;

/** Reads the figures of the page by scenario and case, as {@link fillDocument} wrote them. */
export function readDocument(page: string): Record<string, Record<string, Figures>> {
  const names = Object.fromEntries(Object.entries(TITLES).map(([name, title]) => [title, name]));
  const scenarios: Record<string, Record<string, Figures>> = {};
  for (const [, , scenario = '', table = ''] of page.matchAll(PART)) {
    const [head = [], ...rows] = table
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .map((line) => line.slice(2, -2).split(' | '));
    scenarios[scenario] = Object.fromEntries(
      rows.map(([name = '', ...cells]) => [
        name.trim(),
        Object.fromEntries(
          cells.flatMap((cell, index) =>
            cell.trim() === '' ? [] : [[names[head[index + 1] ?? ''] ?? '', Number(cell)]],
          ),
        ),
      ]),
    );
  }
  return scenarios;
}

/** Parts of the page that show one scenario; a scenario without an entry has one part of its name. */
const PARTS_OF: Record<string, readonly string[]> = { rest: ['rest', 'rest-memory', 'rest-counted'] };

/** Parts of the page that show no scenario. */
const GENERAL_PARTS = new Set(['summary', 'run', 'targets']);

/** Scenarios whose figures the summary shows. */
const SUMMARIZED = ['rest', 'max', 'latency'];

/**
 * Inserts the figures of a run into the marked parts of docs/performance.md. A run of some scenarios leaves all other
 * parts unchanged, and states its date below its tables. It writes the summary if it has all scenarios of the summary,
 * so that no row of it is compared with one of another run.
 */
export function fillDocument(document: string, report: Report): string {
  const tables = Object.fromEntries(
    report.scenarios.flatMap((scenario) =>
      (PARTS_OF[scenario.name] ?? [scenario.name]).map((part) => [part, scenarioTable(part, scenario)]),
    ),
  );
  const names = [...document.matchAll(PART)].map(([, , name = '']) => name);
  const isComplete = names.every((name) => GENERAL_PARTS.has(name) || tables[name] !== undefined);
  const isSummarized = SUMMARIZED.every((name) => tables[name] !== undefined);
  const date = isComplete ? '' : `\n\nMeasured on ${dayOf(report)} in a separate run.`;
  const partOf = (name: string, before: string) => {
    if (name === 'summary') return isSummarized ? summaryTable(report, before) + date : undefined;
    if (name === 'run') return isComplete ? runText(report) : undefined;
    if (name === 'targets') return targetsTable(report, before);
    return tables[name] === undefined ? undefined : tables[name] + date;
  };
  return document.replace(PART, (match: string, begin: string, name: string, before: string, end: string) => {
    const part = partOf(name, before);
    return part === undefined ? match : `${begin}\n${part}\n\n${end}`;
  });
}

const dayOf = ({ startedAt }: Report) => startedAt.slice(0, 10);

function runText(report: Report): string {
  const { seconds, machine, raw, lengths } = report;
  return [
    `Measured on ${dayOf(report)} in ${Math.round(seconds / 60)} minutes: ${machine.cores} cores of ${machine.processor}, `,
    `${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}. Medians of ${lengths.runs} runs of ${lengths.seconds} s. `,
    `Raw got in one process: ${Math.round(raw.ratePerSecond)} requests per second before the run, ${Math.round(raw.afterRatePerSecond)} after it; `,
    `${Math.round(raw.cpuMicrosPerRequest)} µs of CPU per request, ${raw.concurrency} concurrent requests.`,
  ].join('');
}

/** @param before the previous table: its rows of other hardware stay */
function summaryTable(report: Report, before: string): string {
  const { machine, raw } = report;
  const hardware = `${machine.cores} cores of ${machine.processor}, ${machine.memoryGigabytes} GB`;
  const figuresOf = (scenario: string, row: string): Partial<Figures> => {
    const rows = report.scenarios.find(({ name }) => name === scenario)?.rows;
    return rows?.find((one) => one.case === row)?.figures ?? {};
  };
  const rowOf = (program: string, fastest: Partial<Figures>, quiet: Partial<Figures> = {}) => [
    ...[hardware, program],
    ...[fastest.ratePerSecond, quiet.p50Ms, quiet.p99Ms, fastest.cpuMicros].map(optionalText),
  ];
  const restRow = (program: string, name = '') =>
    rowOf(program, figuresOf('rest', `${name}maximum rate`), figuresOf('rest', `${name}100/s`));
  const rows = [
    restRow('**Runhook**, from the REST call to the endpoint'),
    rowOf(
      '**Runhook**, from the queue to the endpoint, 1 dispatcher',
      figuresOf('max', '1 dispatcher'),
      figuresOf('latency', '100 events/s'),
    ),
    rowOf('the same, 2 dispatchers', figuresOf('max', '2 dispatchers')),
    rowOf('raw got in one process', { ratePerSecond: raw.ratePerSecond, cpuMicros: raw.cpuMicrosPerRequest }),
    restRow('raw got behind bare Express', 'raw got behind bare Express, '),
    restRow('minimal service', 'minimal service: two INSERTs, a Redis list, raw got, '),
  ];
  const others = before
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .filter((line) => !line.startsWith(`| ${hardware} |`));
  const head = ['hardware', 'program', 'maximum per second', 'p50 at 100/s, ms', 'p99 at 100/s, ms'];
  return [markdownTable([...head, 'CPU per delivery, µs'], rows), ...others].join('\n');
}

function optionalText(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '' : figureText(value);
}

/** Targets that only the output of the run shows, because the page has their figures in the tables of the scenarios. */
const OMITTED_TARGETS = /, (MB|ms|bytes)$|^Redis bytes|^with a million deferred/;

/**
 * Omits {@link OMITTED_TARGETS}, and targets that no run has measured.
 *
 * @param before the previous table: figures that this run did not measure stay
 */
function targetsTable(report: Report, before: string): string {
  const rows = targetsOf(report).flatMap((target) => {
    const { figure, pass } = target;
    const row = before.split('\n').find((line) => line.startsWith(`| ${figure} | `));
    const measured = target.measured ?? Number(row?.split(' | ')[3] ?? Number.NaN);
    if (Number.isNaN(measured) || OMITTED_TARGETS.test(figure)) return [];
    const cells = [figure, String(pass), formatStretchGoal(target), figureText(measured)];
    return [[...cells, formatVerdict({ ...target, measured })]];
  });
  return markdownTable(['figure', 'pass', 'stretch', 'measured', 'result'], rows);
}

/** Omits {@link OMITTED_ROWS}, and rows that have no figure for this part apart from the rate of their load. */
function scenarioTable(part: string, { rows }: ScenarioResult): string {
  const columns = COLUMNS[part] ?? [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
  const cell = ({ figures }: Row, column: string) => optionalText(figures[column]);
  const isShown = (row: Row) =>
    OMITTED_ROWS[part]?.test(row.case) !== true &&
    columns.some((column) => column !== 'ratePerSecond' && cell(row, column));
  return markdownTable(
    ['', ...columns.map((column) => TITLES[column] ?? column)],
    rows.filter(isShown).map((row) => [row.case, ...columns.map((column) => cell(row, column))]),
  );
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}
