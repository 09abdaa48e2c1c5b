import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Egress, EgressResult } from '@runhook/egress';
import { createEgress } from '@runhook/egress/client';
import type { Attack } from './attack.ts';

/** Maximum cost of an attempt, relative to one at an endpoint that responds normally on a new connection. */
const TIMES_MAX = 10;
const MEMORY_GROWTH_MAX_BYTES = 100_000_000;

/** Number of rounds: several find the minimum cost of an attempt; one is enough for the outcome. */
const ROUNDS = 4;
/** Number of concurrent attempts. */
const ATTEMPTS_IN_A_ROUND = 25;
const ATTEMPTS_IN_A_SMALL_ROUND = 10;
/** Timeout of an attempt, which is the duration of attempts at silent endpoints. */
const TIMEOUT_MS = 1_000;

interface Measured {
  name: string;
  /** Outcomes of all attempts; more than one if they differed. */
  outcome: string;
  /** Duration of all concurrent attempts. */
  wallMs: number;
  /** CPU time of the sender's process for one attempt; the minimum of all rounds, which other load affects least. */
  cpuMs: number;
  memoryBytes: number;
  costly: boolean;
}

/**
 * Makes attempts at every hostile endpoint, one endpoint after another. Reports outcome, duration, and the cost for the sender
 * relative to a normal response.
 */
export const hostileEndpoints: Attack = {
  name: 'hostile endpoints',
  async run({ endsAtMs, isSmall = false, log }) {
    const count = isSmall ? ATTEMPTS_IN_A_SMALL_ROUND : ATTEMPTS_IN_A_ROUND;
    const { child, port, names } = await startHostileServer();
    try {
      const rounds = endsAtMs === null ? 1 : ROUNDS;
      const warm = await measure(port, 'plain', { rounds, count });
      log(`normal responses cost ${warm.cpuMs.toFixed(2)} ms of CPU before the code is compiled`);
      const rows: Measured[] = [];
      for (const name of names) {
        const row = await measure(port, name, { rounds, count });
        rows.push(row);
        if (endsAtMs !== null) log(`${name}: ${row.outcome}, ${row.cpuMs.toFixed(2)} ms of CPU`);
      }
      // Measured again after the code was compiled by the JIT.
      const plainCpuMs = (await measure(port, 'plain', { rounds, count })).cpuMs;
      // npm test does not check the cost, because it runs on machines with other load.
      const costProblemsFound = endsAtMs === null ? [] : costProblems(rows, plainCpuMs);
      return {
        table: formatTable(rows, { plainCpuMs, count }),
        problems: [...judgementProblems(rows), ...costProblemsFound],
      };
    } finally {
      child.disconnect();
    }
  },
};

async function startHostileServer(): Promise<{ child: ChildProcess; port: number; names: string[] }> {
  const child = fork(new URL('./hostile-server.mjs', import.meta.url), { execArgv: [] });
  const [{ port, names }] = (await once(child, 'message')) as [{ port: number; names: string[] }];
  return { child, port, names };
}

async function measure(
  port: number,
  name: string,
  { rounds, count }: { rounds: number; count: number },
): Promise<Measured> {
  const egress = createEgress({ allowCidrs: ['127.0.0.1/32'], timeoutMs: TIMEOUT_MS });
  const outcomes = new Set<string>();
  let [cpuMs, wallMs, memoryBytes] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
  let costly = false;
  try {
    // A busy machine reads several bytes at once, so the attempt costs less. Another round measures the cost of single bytes.
    const isExpected = () => costly || !COSTLY.includes(name);
    for (let round = 0; round < rounds || (round < ROUNDS && !isExpected()); round += 1) {
      const before = { cpu: process.cpuUsage(), ms: performance.now(), bytes: process.memoryUsage().rss };
      const results = await sendAttempts(
        egress,
        `http://127.0.0.1:${port}/${encodeURIComponent(name)}`,
        count,
      );
      const { user, system } = process.cpuUsage(before.cpu);
      cpuMs = Math.min(cpuMs, (user + system) / 1_000 / count);
      wallMs = Math.min(wallMs, performance.now() - before.ms);
      memoryBytes = Math.max(memoryBytes, process.memoryUsage().rss - before.bytes);
      for (const result of results) outcomes.add(outcomeOf(result));
      costly ||= results.some((result) => result.costly);
    }
  } finally {
    egress.close();
  }
  return { name, outcome: [...outcomes].join(', '), wallMs, cpuMs, memoryBytes, costly };
}

function sendAttempts(egress: Egress, url: string, count: number): Promise<EgressResult[]> {
  const body = JSON.stringify({ eventId: 'wev_x', data: 'x'.repeat(1_000) });
  const headers = { 'content-type': 'application/json' };
  return Promise.all(Array.from({ length: count }, () => egress.post({ accountId: 1, url, headers, body })));
}

/** Endpoints that must be reported as costly, and those that must not. */
const COSTLY = ['chunks of a byte', 'interim responses, a flood', 'headers in single bytes'];
const NOT_COSTLY = ['plain', 'plain, keep-alive', 'plain 500', 'body of 64 KiB', 'redirect', 'silence'];
const OUTCOMES = new Map([
  ['plain', '200'],
  ['silence', 'timeout'],
]);

function judgementProblems(rows: readonly Measured[]): string[] {
  return rows.flatMap(({ name, outcome, costly }) => {
    const problems: string[] = [];
    const expected = OUTCOMES.get(name);
    if (expected !== undefined && outcome !== expected)
      problems.push(`${name}: has the outcome ${outcome} instead of ${expected}`);
    if (COSTLY.includes(name) && !costly) problems.push(`${name}: is not reported as costly`);
    if (NOT_COSTLY.includes(name) && costly) problems.push(`${name}: is reported as costly`);
    return problems;
  });
}

function outcomeOf({ response, error }: EgressResult): string {
  return error?.code ?? String(response?.statusCode);
}

function costProblems(rows: readonly Measured[], plainCpuMs: number): string[] {
  return rows.flatMap(({ name, cpuMs, memoryBytes }) => {
    const problems: string[] = [];
    const times = cpuMs / plainCpuMs;
    if (times > TIMES_MAX) problems.push(`${name}: an attempt costs ${times.toFixed(1)} times a normal one`);
    if (memoryBytes > MEMORY_GROWTH_MAX_BYTES) problems.push(`${name}: memory grew by ${memoryBytes} bytes`);
    return problems;
  });
}

function formatTable(
  rows: readonly Measured[],
  { plainCpuMs, count }: { plainCpuMs: number; count: number },
): string {
  const lines = rows.map(({ name, outcome, wallMs, cpuMs, memoryBytes, costly }) =>
    [
      '',
      name,
      outcome,
      wallMs.toFixed(0),
      cpuMs.toFixed(2),
      (cpuMs / plainCpuMs).toFixed(1),
      (memoryBytes / 1e6).toFixed(1),
      costly ? 'small share' : '',
      '',
    ]
      .join(' | ')
      .trim(),
  );
  return [
    `| endpoint | outcome | ${count} at once, ms | CPU of one, ms | times a normal one | memory, MB | |`,
    '|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}
