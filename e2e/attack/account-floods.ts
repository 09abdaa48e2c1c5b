import { fork } from 'node:child_process';
import { once } from 'node:events';
import { queueBackends, seedAccount } from '@runhook/testing';
import { openSystem, type System } from '../observability/system.ts';
import type { RunningService } from '../services.ts';
import type { Attack } from './attack.ts';

const RUNS = 200_000;
const RUNS_SMALL = 5_000;
/** Number of calls of the other account, alone and during each flood. */
const CALLS = 1_000;
const CALLS_SMALL = 15;
/**
 * Limit for the p99 of the other account during a flood within a budget, relative to its p99 alone: the median of all
 * rounds, because the machine has other load.
 */
const TIMES_MAX = 2;

interface Flood {
  name: string;
  connections: number;
  path(accountId: number): string;
  /** Body of a POST; a GET without. */
  body?(receiverUrl: string): object;
  /** Budget whose metric must count the rejections; null for calls without an account. */
  budget: string | null;
}

const FLOODS: readonly Flood[] = [
  {
    name: 'tests of endpoints',
    connections: 1_000,
    path: (accountId) => `/v3/accounts/${accountId}/webhooks/test`,
    body: (client_url) => ({ client_url }),
    budget: 'endpoint_tests',
  },
  {
    name: 'searches of runs',
    connections: 30,
    path: (accountId) => `/v2/accounts/${accountId}/runs/?search=zzz&order_by=finished_at`,
    budget: 'slow_reads',
  },
  {
    name: 'sign-ins from changing networks',
    connections: 48,
    path: () => '/v3/session',
    body: () => ({ email: 'unknown-{index}@example.com', password: 'wrong' }),
    budget: null,
  },
];

interface Row {
  flood: string;
  baseline: Measured;
  during: Measured;
  floodStatuses: Map<number, number>;
  /** Null for a flood without an account. */
  rejected: number | null;
}

interface Measured {
  statuses: Map<number, number>;
  p99Ms: number;
}

/** Floods management with each kind of costly request, while another account makes ordinary calls. */
export const accountFloods: Attack = {
  name: 'account floods',
  async run({ endsAtMs, isSmall = false, log }) {
    const backend = queueBackends().at(-1);
    if (!backend) throw new Error('there is no queue back end');
    const system = await openSystem(backend);
    const rows: Row[] = [];
    try {
      // The rate limit would end the floods.
      const management = await system.start('management', {
        API_RATE_LIMIT_PER_MINUTE: '10000000',
        TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
      });
      const { id: otherId } = await seedAccount(system.database);
      const other = { accountId: otherId, token: (await system.newToken(otherId)).token };
      await seedRuns(system, isSmall ? RUNS_SMALL : RUNS);
      system.receiver.respondWith({ status: 200, delayMs: 1_000 });
      do {
        for (const flood of FLOODS) {
          const row = await runFlood(system, {
            management,
            other,
            flood,
            calls: isSmall ? CALLS_SMALL : CALLS,
          });
          rows.push(row);
          if (endsAtMs !== null) log(describeRow(row));
        }
      } while (endsAtMs !== null && Date.now() < endsAtMs);
    } finally {
      await system.close();
    }
    return {
      table: [
        '| flood | other account alone | during the flood | flood | rejected by its budget |',
        '|---|---|---|---|---|',
      ]
        .concat(rows.map(describeRow))
        .join('\n'),
      // npm test does not check times, because it runs on machines with other load.
      problems: [...rows.flatMap(problemsOf), ...(endsAtMs === null ? [] : slowdownProblems(rows))],
    };
  },
};

async function seedRuns({ database, account }: System, count: number): Promise<void> {
  await database.pool.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
       engine_version, status, started_at)
     SELECT $1, n, 1, 'Job ' || n % 100, 1, 'Warehouse', 1, 'Production', '1', 'Running', now()
     FROM generate_series(1, $2::int) AS n`,
    [account.id, count],
  );
  await database.pool.query('ANALYZE runs');
}

async function runFlood(
  { account, token, receiver }: System,
  options: {
    management: RunningService;
    other: { accountId: number; token: string };
    flood: Flood;
    calls: number;
  },
): Promise<Row> {
  const { management, other, flood, calls } = options;
  const path = `/v3/accounts/${other.accountId}/webhooks/subscriptions`;
  const measure = () => measureCalls(() => call(management, other.token, path), calls);
  await measure();
  const baseline = await measure();
  const { budget } = flood;
  const countRejected = async () => (budget === null ? null : await readRejected(management, budget));
  const rejectedBefore = await countRejected();
  const client = await startFloodClient({
    url: `${management.url}/api${flood.path(account.id)}`,
    token: budget === null ? null : token,
    changesNetwork: budget === null,
    connections: flood.connections,
    body: flood.body === undefined ? null : JSON.stringify(flood.body(receiver.url)),
  });
  const during = await measure();
  const floodStatuses = await client.stop();
  const rejectedAfter = await countRejected();
  const rejected = rejectedAfter === null ? null : rejectedAfter - (rejectedBefore ?? 0);
  return { flood: flood.name, baseline, during, floodStatuses, rejected };
}

interface FloodCalls {
  url: string;
  /** Null for calls without a credential. */
  token: string | null;
  /** Whether each call has another client network, as if forwarded by a proxy. */
  changesNetwork: boolean;
  /** JSON of a POST, in which the client replaces `{index}`; null for a GET. */
  body: string | null;
  connections: number;
}

/** Resolves when the first call has a response. */
async function startFloodClient(calls: FloodCalls): Promise<{ stop(): Promise<Map<number, number>> }> {
  const child = fork(new URL('./flood-client.mjs', import.meta.url), [JSON.stringify(calls)], {
    execArgv: [],
  });
  const exited = once(child, 'exit');
  const nextMessage = async <Message>() => {
    const result = await Promise.race([once(child, 'message'), exited.then(() => null)]);
    if (result === null) throw new Error('the client of the flood failed');
    return result[0] as Message;
  };
  await nextMessage();
  return {
    async stop() {
      const ended = nextMessage<Record<string, number>>();
      child.send('stop');
      const statuses = await ended;
      await exited;
      return new Map(Object.entries(statuses).map(([status, times]) => [Number(status), times]));
    },
  };
}

async function call({ url }: RunningService, token: string, path: string): Promise<number> {
  const response = await fetch(`${url}/api${path}`, { headers: { authorization: `Token ${token}` } });
  await response.arrayBuffer();
  return response.status;
}

async function measureCalls(send: () => Promise<number>, calls: number): Promise<Measured> {
  const statuses = new Map<number, number>();
  const durationsMs: number[] = [];
  for (let index = 0; index < calls; index++) {
    const startedMs = performance.now();
    const status = await send();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    durationsMs.push(performance.now() - startedMs);
  }
  durationsMs.sort((one, another) => one - another);
  return { statuses, p99Ms: durationsMs[Math.ceil(calls * 0.99) - 1] ?? 0 };
}

async function readRejected({ operationsUrl }: RunningService, budget: string): Promise<number> {
  const metrics = await (await fetch(`${operationsUrl}/metrics`)).text();
  const line = new RegExp(`^runhook_http_requests_rejected_total\\{.*budget="${budget}".*\\} (.+)$`, 'm');
  return Number(line.exec(metrics)?.[1] ?? 0);
}

function problemsOf({ flood, during, floodStatuses, rejected }: Row): string[] {
  const problems: string[] = [];
  for (const status of during.statuses.keys())
    if (status !== 200) problems.push(`${flood}: a call of the other account got a ${status}`);
  if (rejected === null && !floodStatuses.has(401)) problems.push(`${flood}: no password was checked`);
  if (rejected === 0) problems.push(`${flood}: the metric of the budget counts no rejection`);
  return problems;
}

function slowdownProblems(rows: readonly Row[]): string[] {
  return FLOODS.filter(({ budget }) => budget !== null).flatMap(({ name }) => {
    const times = rows
      .filter(({ flood }) => flood === name)
      .map(({ during, baseline }) => during.p99Ms / baseline.p99Ms)
      .sort((one, another) => one - another);
    const median = times[times.length >> 1] ?? 0;
    if (median <= TIMES_MAX) return [];
    return [`${name}: the p99 of the other account is ${median.toFixed(1)} times its p99 alone`];
  });
}

function describeRow({ flood, baseline, during, floodStatuses, rejected }: Row): string {
  const statusesOf = (statuses: Map<number, number>) =>
    [...statuses].map(([status, times]) => `${times} x ${status}`).join(', ');
  const describe = ({ statuses, p99Ms }: Measured) => `${statusesOf(statuses)}, p99 ${p99Ms.toFixed(0)} ms`;
  return `| ${flood} | ${describe(baseline)} | ${describe(during)} | ${statusesOf(floodStatuses)} | ${rejected ?? ''} |`;
}
