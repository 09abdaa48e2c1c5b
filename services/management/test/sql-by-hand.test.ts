import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';

const SOURCES = new URL('../src/', import.meta.url);

/**
 * The list of what management asks PostgreSQL by hand, with the reason that stands on top of each file; everything else
 * goes through Prisma Client (docs/adr/0030-prisma-and-sql.md). The linter holds the same list (biome.json).
 */
const BY_HAND: Record<string, string> = {
  'audit/actor.ts': 'a setting of the transaction, which the triggers of the audit log read.',
  'deliveries/account-counts.ts':
    'the deliveries of all webhooks of an account, of which millions are counted by the half-hour.',
  'deliveries/account-log-places.ts':
    'where in the logs of an account’s webhooks to look, by the indexes and the days that there are.',
  'deliveries/account-log.ts':
    'the log of all webhooks of an account, read through the index of each, in stretches that are bounded.',
  'deliveries/begin-recovery.ts':
    'counts the log and begins in one statement, its window exact to the microsecond.',
  'deliveries/by-operator.ts':
    'the log; a delivery is found by its id alone, and ended under the condition that it is pending.',
  'deliveries/delivery.ts': 'the log, found by day and id in its partition, with times to the microsecond.',
  'deliveries/histogram.ts':
    'the log of all webhooks of an account, counted by index into bars of one width.',
  'deliveries/hourly-counts.ts': 'the log, of which millions are counted by the hour.',
  'deliveries/log-statements.ts': 'the log, whose pages are found among millions by their place.',
  'deliveries/redeliver.ts': 'the log; begun in one statement, under the lock of the delivery.',
  'deliveries/rates.ts': 'the log of a whole page of webhooks, counted by the hour from its indexes.',
  'deliveries/run-events.ts':
    'a run’s deliveries by the index of runs, and among the events that nobody has fanned out, which are few.',
  'deliveries/statistics.ts': 'the log, counted and ranked in one statement.',
  'deliveries/incident-evidence.ts':
    'the log of several subscriptions, each read in its own time and its own days, in one statement.',
  'http/idempotency.ts': 'a key is claimed in one statement, which takes over what has expired.',
  'identity/find-principal.ts':
    'asked for each request of a job runner, where Prisma Client takes three times the CPU.',
  'runs/published-events.ts':
    'the hot path; what many callers publish at about the same time is one statement.',
  'runs/report-statements.ts':
    'the hot path; what many runners report at about the same time is one statement.',
  'runs/runs.ts': 'the hot path; a report with an Idempotency-Key is one transaction with its answer.',
  'runs/statements.ts': 'runs as the hot path writes them, read in the same columns.',
  'subscriptions/changes.ts':
    'a look every two seconds, by the version that PostgreSQL gives a row and by the newest page of the log.',
  'subscriptions/rotation.ts': "the transaction's timestamp, which Prisma Client cannot select.",
};

const SQL =
  /\b(?:runStatement|queryRows|inTransaction|Prisma\.(?:sql|raw))\b|\$(?:query|execute)Raw|from 'pg'|\b(?:pool|client)\.(?:query|connect)\(/;

async function sources(): Promise<Map<string, string>> {
  const names = (await readdir(SOURCES, { recursive: true })).filter((name) => name.endsWith('.ts')).sort();
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, SOURCES), 'utf8')));
  return new Map(names.map((name, index) => [name, texts[index] ?? '']));
}

test('what management asks by hand stands in the files of the list, each with its reason on top', async () => {
  const found = [...(await sources())].filter(([, text]) => SQL.test(text));
  const reasons = found.map(([name, text]) => [name, /^\/\/ SQL by hand: (.+)\n/.exec(text)?.[1]]);
  expect(Object.fromEntries(reasons)).toEqual(BY_HAND);
});

test('the linter lets these files have SQL, and no others', async () => {
  const { overrides } = JSON.parse(await readFile(new URL('../../../biome.json', import.meta.url), 'utf8'));
  const folder = 'services/management/src/';
  const listed = Object.keys(BY_HAND).map((name) => folder + name);
  const restricts = overrides.filter(({ linter }: { linter: object }) =>
    JSON.stringify(linter).includes('runStatement'),
  );
  expect(restricts.map(({ includes }: { includes: string[] }) => includes)).toEqual([
    [`${folder}*/**`, ...listed.map((name) => `!${name}`)],
  ]);
});
