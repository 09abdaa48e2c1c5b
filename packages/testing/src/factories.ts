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
import { createAccount, createJob, createSecretBox, type JobView } from '@runhook/database';
import type { PrismaDatabase } from '@runhook/database/prisma';

const TEST_KEY = { name: 'test', key: randomBytes(32) };

/** `ENCRYPTION_KEYS` of the services under test, and the box that reads what they wrote. */
export const testEncryptionKeys = [TEST_KEY];
export const testEncryptionKeysText = `${TEST_KEY.name}:${TEST_KEY.key.toString('base64')}`;
export const testSecrets = createSecretBox(testEncryptionKeys);

export interface TestAccount {
  id: number;
  identifier: string;
  jobs: JobView[];
}

/** An account with two jobs; on Enterprise, multi-tenant, unless told otherwise. */
export async function seedAccount(
  { prisma }: PrismaDatabase,
  options: { plan?: Plan; deployment?: Deployment } = {},
): Promise<TestAccount> {
  const { plan = 'enterprise', deployment = 'multi_tenant' } = options;
  const account = await createAccount(prisma, { name: 'Test account', plan, deployment });
  const jobs: JobView[] = [];
  for (const name of ['Nightly build', 'Hourly load']) {
    jobs.push(
      await createJob(prisma, {
        accountId: account.id,
        name,
        projectName: 'Warehouse',
        environmentName: 'Production',
      }),
    );
  }
  return { ...account, jobs };
}

export interface TestSubscription {
  id: string;
  name: string;
  hmacSecret: string;
}

/** A subscription written straight into the database: to all event types and all jobs unless told otherwise. */
export async function seedSubscription(
  { prisma }: PrismaDatabase,
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
  const { id, name } = await prisma.subscription.create({
    data: {
      id: createId('subscription'),
      accountId: BigInt(options.accountId),
      name: options.name ?? 'Test subscription',
      description: '',
      eventTypes: options.eventTypes ?? [...EVENT_TYPES],
      jobIds: (options.jobIds ?? []).map(BigInt),
      clientUrl: options.clientUrl,
      active: options.active ?? true,
      hmacSecretCiphertext: testSecrets.encrypt(hmacSecret),
    },
  });
  return { id, name, hmacSecret };
}

const TIMES: Record<RunTime, string> = {
  runFinishedAt: '2026-01-31T19:31:20Z',
  runErroredAt: '2026-01-31T19:31:19Z',
};

/** Of events that never come into a database. */
export const EXAMPLE_JOB: JobView = {
  id: 7,
  account_id: 1,
  name: 'Nightly build',
  project_id: 2,
  project_name: 'Warehouse',
  environment_id: 3,
  environment_name: 'Production',
};

/** A valid event of a run of the job. */
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

/** Events whose deliveries are committed. */
export async function countFannedOut({ pool }: PrismaDatabase): Promise<number> {
  const text = 'SELECT (SELECT count(*) FROM events) - (SELECT count(*) FROM undispatched_events) AS count';
  return Number((await pool.query<{ count: string }>(text)).rows[0]?.count);
}
