import { setTimeout as wait } from 'node:timers/promises';
import { createServiceToken } from '@runhook/database';
import { exampleEvent, seedAccount, seedSubscription, type TestAccount } from '@runhook/testing';
import type { Bench } from '../bench.ts';
import type { Expected } from '../measure/ledger.ts';
import { type Program, startProgram } from '../programs/program.ts';
import { callsOf, type Reported, type Runner } from '../programs/reports.ts';
import type { QueueName, World, WorldOptions } from './world.ts';

const ACCOUNTS = 20;

/** A world with runners and the data for their ledger. */
export interface RunnersWorld {
  world: World;
  reporter: Program;
  runners: Runner[];
  /** The path of the account's only subscription, by account. */
  paths: Map<number, string>;
  /** Appended to the names of rows, such as `, queue in PostgreSQL`. */
  suffix: string;
}

let lastEndpoint = 0;

export interface RunnersOptions extends Partial<WorldOptions> {
  /** Number of accounts with one subscription and one runner each; default 20. */
  accounts?: number;
}

/** Starts the reporter process and stops it after the work. */
export async function withReporter<Result>(work: (reporter: Program) => Promise<Result>): Promise<Result> {
  const reporter = startProgram('reporter');
  try {
    return await work(reporter);
  } finally {
    await reporter.stop();
  }
}

/** Starts servers, services and runners, and stops them after the work. */
export async function withRunnersWorld<Result>(
  bench: Bench,
  reporter: Program,
  queue: QueueName,
  { accounts = ACCOUNTS, ...options }: RunnersOptions,
  work: (rest: RunnersWorld) => Promise<Result>,
): Promise<Result> {
  const world = await bench.openWorld(queue, { management: true, ...options });
  try {
    bench.progress('setting up');
    const runners: Runner[] = [];
    const paths = new Map<number, string>();
    for (let index = 0; index < accounts; index += 1) {
      const account = await seedAccount(world.database);
      runners.push(await createRunner(world, account));
      lastEndpoint += 1;
      const path = `/ok/rest-${lastEndpoint}`;
      const clientUrl = `http://127.9.0.${lastEndpoint % 250}:${world.receiver.port}${path}`;
      await seedSubscription(world.database, { accountId: account.id, clientUrl });
      paths.set(account.id, path);
    }
    const suffix = queue === 'redis' ? '' : ', queue in PostgreSQL';
    return await work({ world, reporter, runners, paths, suffix });
  } finally {
    await world.close();
  }
}

async function createRunner({ database }: World, { id: accountId, jobs }: TestAccount): Promise<Runner> {
  const permissionSets = ['job_runner' as const];
  const [job] = jobs as [TestAccount['jobs'][number]];
  const { token } = await createServiceToken(database.prisma, { accountId, name: 'bench', permissionSets });
  return { accountId, token, jobId: job.id, template: exampleEvent('job.run.completed', job) };
}

const SELECT_REPORTED_EVENTS = `
  SELECT id, account_id || ' ' || run_id || ' ' || event_type AS call
  FROM events WHERE account_id = ANY($1) AND account_id || ' ' || run_id || ' ' || event_type = ANY($2)`;

/** Returns the deliveries of the reported calls, with the ids of their events from the log: callers do not get them. */
export async function listExpected(
  { world, runners, paths }: RunnersWorld,
  reported: Reported,
): Promise<Expected[]> {
  const calls = callsOf(reported);
  const { rows } = await world.database.pool.query<{ id: string; call: string }>(SELECT_REPORTED_EVENTS, [
    runners.map(({ accountId }) => accountId),
    calls.map(({ call }) => call),
  ]);
  const eventIds = new Map(rows.map(({ id, call }) => [call, id]));
  return calls.map(({ call, intendedMs }) => ({
    eventId: eventIds.get(call) ?? `${call}, of which there is no event`,
    path: paths.get(Number.parseInt(call, 10)) ?? '',
    intendedMs,
  }));
}

export async function countEvents({ world, runners }: RunnersWorld): Promise<number> {
  const { rows } = await world.database.pool.query<{ count: string }>(
    'SELECT count(*) FROM events WHERE account_id = ANY($1)',
    [runners.map(({ accountId }) => accountId)],
  );
  return Number(rows[0]?.count);
}

const DRAIN_MAX_MS = 120_000;
const DRAIN_POLL_MS = 200;

/** Waits until all events are dispatched and no delivery is pending. */
export async function waitUntilDrained({ world }: RunnersWorld): Promise<void> {
  const text = `
    SELECT (EXISTS (SELECT FROM undispatched_events)
            OR EXISTS (SELECT FROM deliveries WHERE status = 'pending')) AS "isBusy"`;
  for (const deadline = Date.now() + DRAIN_MAX_MS; Date.now() < deadline; ) {
    const { rows } = await world.database.pool.query<{ isBusy: boolean }>(text);
    if (!rows[0]?.isBusy) return;
    await wait(DRAIN_POLL_MS);
  }
}
