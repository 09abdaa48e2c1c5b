import { randomBytes } from 'node:crypto';
import {
  createHmacSecret,
  createId,
  createSampleEvent,
  type Deployment,
  EVENT_TYPES,
  type EventType,
  type JobRunEvent,
  type Plan,
  type RunTime,
} from '@runhook/contract';
import { createSecretBox, type JobView } from '@runhook/database';
import type { PrismaDatabase } from '@runhook/database/prisma';

const TEST_KEY = { name: 'test', key: randomBytes(32) };

/** `ENCRYPTION_KEYS` of the services under test, and the box that decrypts what they wrote. */
export const testEncryptionKeys = [TEST_KEY];
export const testEncryptionKeysText = `${TEST_KEY.name}:${TEST_KEY.key.toString('base64')}`;
export const testSecrets = createSecretBox(testEncryptionKeys);

export interface TestAccount {
  id: number;
  identifier: string;
  jobs: JobView[];
}

/**
 * Inserts an account with two jobs; on Enterprise, multi-tenant, unless the options differ. The factories use SQL, because Prisma
 * compiles its query engine in each test file, which takes a fifth of a second of CPU.
 */
export async function seedAccount(
  { pool }: Pick<PrismaDatabase, 'pool'>,
  options: { plan?: Plan; deployment?: Deployment } = {},
): Promise<TestAccount> {
  const { plan = 'enterprise', deployment = 'multi_tenant' } = options;
  const insert = async (text: string, values: unknown[]) =>
    Number((await pool.query<{ id: string }>(`${text} RETURNING id`, values)).rows[0]?.id);
  const identifier = createId('account');
  const id = await insert(
    "INSERT INTO accounts (identifier, name, plan, deployment) VALUES ($1, 'Test account', $2, $3)",
    [identifier, plan, deployment],
  );
  const [projectName, environmentName] = ['Warehouse', 'Production'];
  const projectId = await insert('INSERT INTO projects (account_id, name) VALUES ($1, $2)', [
    id,
    projectName,
  ]);
  const environmentId = await insert('INSERT INTO environments (account_id, name) VALUES ($1, $2)', [
    id,
    environmentName,
  ]);
  const jobs: JobView[] = [];
  for (const name of ['Nightly build', 'Hourly load']) {
    jobs.push({
      id: await insert(
        'INSERT INTO jobs (account_id, name, project_id, environment_id) VALUES ($1, $2, $3, $4)',
        [id, name, projectId, environmentId],
      ),
      account_id: id,
      name,
      project_id: projectId,
      project_name: projectName,
      environment_id: environmentId,
      environment_name: environmentName,
    });
  }
  return { id, identifier, jobs };
}

export interface TestSubscription {
  id: string;
  name: string;
  hmacSecret: string;
}

/** Inserts a subscription; by default to all event types and all jobs. */
export async function seedSubscription(
  { pool }: Pick<PrismaDatabase, 'pool'>,
  options: {
    accountId: number;
    clientUrl: string;
    eventTypes?: EventType[];
    jobIds?: number[];
    active?: boolean;
    name?: string;
  },
): Promise<TestSubscription> {
  const hmacSecret = createHmacSecret();
  const { accountId, clientUrl, name = 'Test subscription', active = true, jobIds = [] } = options;
  const id = createId('subscription');
  await pool.query(
    `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active, hmac_secret_ciphertext)
     VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8)`,
    [
      id,
      accountId,
      name,
      options.eventTypes ?? EVENT_TYPES,
      jobIds,
      clientUrl,
      active,
      testSecrets.encrypt(hmacSecret),
    ],
  );
  return { id, name, hmacSecret };
}

const TIMES: Record<RunTime, string> = {
  runFinishedAt: '2026-01-31T19:31:20Z',
  runErroredAt: '2026-01-31T19:31:19Z',
};

/** The job of events that are never stored in a database. */
export const EXAMPLE_JOB: JobView = {
  id: 7,
  account_id: 1,
  name: 'Nightly build',
  project_id: 2,
  project_name: 'Warehouse',
  environment_id: 3,
  environment_name: 'Production',
};

/** Returns a valid event of a run of the job. */
export function exampleEvent(eventType: EventType, job: JobView, runId = 7_001): JobRunEvent {
  const timestamp = `${new Date().toISOString().slice(0, -1)}123456Z`;
  const run = {
    jobId: String(job.id),
    jobName: job.name,
    runId: String(runId),
    environmentId: String(job.environment_id),
    environmentName: job.environment_name,
    engineVersion: '1.9.2',
    projectName: job.project_name,
    projectId: String(job.project_id),
    runReason: 'Started by a test',
    runStartedAt: '2026-01-31T19:28:07Z',
  };
  const identity = { eventId: createId('event'), accountId: job.account_id, timestamp };
  return createSampleEvent(eventType, identity, run, (time) => TIMES[time]);
}

/** Counts the events whose deliveries are committed. */
export async function countDispatchedEvents({ pool }: PrismaDatabase): Promise<number> {
  const text = 'SELECT (SELECT count(*) FROM events) - (SELECT count(*) FROM undispatched_events) AS count';
  return Number((await pool.query<{ count: string }>(text)).rows[0]?.count);
}
