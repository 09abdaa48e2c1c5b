import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';

const SOURCES = new URL('../src/', import.meta.url);

/**
 * Files with SQL by hand, with the reason in their first line; everything else uses Prisma Client
 * (docs/adr/0030-prisma-and-sql.md). biome.json has the same list.
 */
const BY_HAND: Record<string, string> = {
  'artifacts/statements.ts':
    'an upload replaces a file and its models in one transaction, with arrays of rows.',
  'audit/actor.ts': 'a setting of the transaction, which the triggers of the audit log read.',
  'deliveries/account-counts.ts':
    'counts millions of deliveries of all webhooks of an account by the half-hour.',
  'deliveries/account-log-conditions.ts':
    'conditions for a part of the logs of an account’s webhooks that an index serves, with the days to read.',
  'deliveries/account-log.ts':
    'reads the log of all webhooks of an account through the index of each, in segments of bounded size.',
  'deliveries/begin-recovery.ts':
    'counts the deliveries and inserts the recovery in one statement, with a window exact to the microsecond.',
  'deliveries/operator-actions.ts':
    'finds a delivery of the log by its id alone, and cancels it only if it is pending.',
  'deliveries/change-history.ts':
    'filters the newest entries of the audit log, of which only those of an account are indexed.',
  'deliveries/delivery.ts':
    'finds rows of the log by day and id in their partition, with times to the microsecond.',
  'deliveries/histogram.ts':
    'counts the log of all webhooks of an account by index into buckets of one width.',
  'deliveries/hourly-counts.ts': 'counts millions of deliveries of the log by the hour.',
  'deliveries/log-statements.ts':
    'finds the page at an offset among millions of rows by counts of deliveries per hour (page-locator.ts).',
  'deliveries/redeliver.ts': "starts a cycle in one statement under a lock of the delivery's row.",
  'deliveries/rate-limit-wait.ts': 'compares times with PostgreSQL’s clock.',
  'deliveries/rates.ts': 'counts the logs of a page of webhooks by the hour from indexes.',
  'deliveries/run-events.ts':
    'finds a run’s deliveries by the index of runs, and its undispatched events, which are few.',
  'deliveries/preview.ts': 'counts a bounded number of runs by what subscriptions select by.',
  'deliveries/unnotified.ts': 'finds the webhooks without deliveries of a run by the index of runs.',
  'deliveries/statistics.ts': 'counts and ranks the log in one statement.',
  'deliveries/incident-evidence.ts':
    'reads the logs of several subscriptions, each in its own time and days, in one statement.',
  'http/idempotency.ts': 'one statement claims a key or takes over an expired one.',
  'identity/find-principal.ts':
    'this runs for each request of a job runner, where Prisma Client takes three times the CPU.',
  'identity/token-uses.ts':
    'also runs where only runs are reported, and Prisma Client would load its query compiler there.',
  'jobs/job-writes.ts': 'locks a row that may not change.',
  'oidc/identities.ts': 'leases and due times by PostgreSQL’s clock, which all processes share.',
  'runs/list-runs.ts': 'runs are read with the columns that the hot path uses.',
  'runs/published-events.ts':
    'this is the hot path, where one statement records the events of concurrent calls.',
  'runs/recent-runs.ts': 'DISTINCT ON returns the latest run of each job, from a bounded number of runs.',
  'runs/report-reads.ts':
    'this is the hot path, where one statement reads the jobs or the runs of many reports.',
  'runs/report-statements.ts':
    'this is the hot path, where one statement records the reports of many runners.',
  'runs/claims.ts': 'the run that a lease names is changed in the transaction that has locked it.',
  'runs/run-requests.ts':
    'one statement leases the next run to a runner, by PostgreSQL’s clock, which all processes share.',
  'runs/run-waits.ts': 'two statements check the runs that all waiting runners of a process wait for.',
  'runs/triggers.ts':
    'a triggered run is written as the hot path writes others, with columns of its options.',
  'runs/claim-routes.ts': 'a claim is one transaction with its response.',
  'runs/run-counters.ts':
    'one statement advances the run counters of many accounts, each beyond the run ids that runners supply.',
  'runs/runs.ts':
    'this is the hot path. A report with an Idempotency-Key is one transaction with its response.',
  'runs/statements.ts': 'runs are read with the columns that the hot path uses.',
  'runs/step-statements.ts':
    'steps are locked with their run, and read without the texts that are not requested.',
  'sessions/sign-in-failures.ts':
    "one statement adds to the counters of many users and networks, in windows of PostgreSQL's clock.",
  'subscriptions/changes.ts':
    'polls every two seconds, by the row versions of PostgreSQL and the newest page of the log.',
  'subscriptions/rotation.ts': "the transaction's timestamp, which Prisma Client cannot select.",
  'subscriptions/stream-callers.ts':
    'checks the callers of all open streams each second, with three kinds of credentials in one statement.',
};

const SQL =
  /\b(?:runStatement|queryRows|inTransaction|Prisma\.(?:sql|raw))\b|\$(?:query|execute)Raw|from 'pg'|\b(?:pool|client)\.(?:query|connect)\(/;

async function sources(): Promise<Map<string, string>> {
  const names = (await readdir(SOURCES, { recursive: true })).filter((name) => name.endsWith('.ts')).sort();
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, SOURCES), 'utf8')));
  return new Map(names.map((name, index) => [name, texts[index] ?? '']));
}

test('all SQL by hand is in the listed files, each with its reason in the first line', async () => {
  const filesWithSql = [...(await sources())].filter(([, text]) => SQL.test(text));
  const reasons = filesWithSql.map(([name, text]) => [name, /^\/\/ SQL by hand: (.+)\n/.exec(text)?.[1]]);
  expect(Object.fromEntries(reasons)).toEqual(BY_HAND);
});

test('the linter permits SQL in the listed files only', async () => {
  const { overrides } = JSON.parse(await readFile(new URL('../../../biome.json', import.meta.url), 'utf8'));
  const folder = 'services/management/src/';
  const listedFiles = Object.keys(BY_HAND).map((name) => folder + name);
  const restricts = overrides.filter(({ linter }: { linter: object }) =>
    JSON.stringify(linter).includes('runStatement'),
  );
  expect(restricts.map(({ includes }: { includes: string[] }) => includes)).toEqual([
    [`${folder}*/**`, ...listedFiles.map((name) => `!${name}`)],
  ]);
});
