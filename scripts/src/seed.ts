import { randomBytes } from 'node:crypto';
import {
  addMembership,
  createAccount,
  createJob,
  createServiceToken,
  createUser,
  hashCredential,
  type JobView,
  jobView,
  type PermissionSet,
  type SecretBox,
  SecretBoxError,
} from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { CredentialsStore, DemoCredentials } from './credentials.ts';
import { StartFailed } from './start-failed.ts';

const PASSWORD_BYTES = 15;
const JOBS = ['Nightly build', 'Hourly load'];

/** The demo account as it is in the database. */
export interface DemoAccount extends Required<Omit<DemoCredentials, 'subscription' | 'jobs'>> {
  jobs: [succeeding: JobView, failing: JobView];
  /** Whether anything had to be made. */
  wasSeeded: boolean;
}

interface Seeding {
  prisma: PrismaClient;
  secrets: SecretBox;
  store: CredentialsStore;
}

/**
 * Makes what the demonstration needs and the database does not have (any more): an account, its user, two service
 * tokens and two jobs. What is there stays as it is.
 */
export async function seedDemo(seeding: Seeding): Promise<DemoAccount> {
  const before = JSON.stringify(seeding.store.credentials);
  const account = await ensureAccount(seeding);
  const user = await ensureUser(seeding, account.id);
  const serviceToken = await ensureToken(seeding, account.id, 'serviceToken', 'demo-admin', 'account_admin');
  const runnerToken = await ensureToken(seeding, account.id, 'runnerToken', 'demo-runner', 'job_runner');
  const jobs = await ensureJobs(seeding, account.id);
  const wasSeeded = JSON.stringify(seeding.store.credentials) !== before;
  return { account, user, serviceToken, runnerToken, jobs, wasSeeded };
}

async function ensureAccount({ prisma, store }: Seeding): Promise<{ id: number; identifier: string }> {
  const { credentials } = store;
  const identifier = credentials.account?.identifier;
  const row = identifier === undefined ? null : await prisma.account.findUnique({ where: { identifier } });
  if (row !== null) return { id: Number(row.id), identifier: row.identifier };
  // The database is another or an empty one: nothing that was remembered means anything in it.
  for (const name of Object.keys(credentials)) delete credentials[name as keyof DemoCredentials];
  const plan = { plan: 'enterprise', deployment: 'multi_tenant' } as const;
  const account = await createAccount(prisma, { name: 'Demo', ...plan });
  credentials.account = account;
  store.save();
  return account;
}

async function ensureUser({ prisma, secrets, store }: Seeding, accountId: number) {
  const { credentials } = store;
  const kept = credentials.user;
  const row = kept === undefined ? null : await prisma.user.findUnique({ where: { id: BigInt(kept.id) } });
  if (kept !== undefined && row !== null && row.email === kept.email) {
    // The key may have been rotated since.
    credentials.user = { ...kept, apiKey: decrypted(secrets, row.apiKeyCiphertext) };
  } else {
    const email = await freeEmail(prisma);
    const password = randomBytes(PASSWORD_BYTES).toString('base64url');
    const { id, apiKey } = await createUser(prisma, secrets, { email, name: 'Demo user', password });
    credentials.user = { id, email, password, apiKey };
  }
  store.save();
  const { user } = credentials;
  const key = { accountId: BigInt(accountId), userId: BigInt(user.id) };
  if ((await prisma.membership.findUnique({ where: { accountId_userId: key } })) === null) {
    await addMembership(prisma, {
      accountId,
      userId: user.id,
      license: 'developer',
      permissionSets: ['account_admin'],
    });
  }
  return user;
}

/** A database that others use as well may have a demo user of theirs. */
async function freeEmail(prisma: PrismaClient): Promise<string> {
  for (let number = 1; ; number += 1) {
    const email = `demo${number === 1 ? '' : `-${number}`}@runhook.local`;
    if ((await prisma.user.findUnique({ where: { email } })) === null) return email;
  }
}

async function ensureToken(
  { prisma, store }: Seeding,
  accountId: number,
  field: 'serviceToken' | 'runnerToken',
  name: string,
  permissionSet: PermissionSet,
): Promise<string> {
  const kept = store.credentials[field];
  if (kept !== undefined) {
    const row = await prisma.serviceToken.findUnique({ where: { tokenHash: hashCredential(kept) } });
    if (row !== null && row.revokedAt === null) return kept;
  }
  const { token } = await createServiceToken(prisma, { accountId, name, permissionSets: [permissionSet] });
  store.credentials[field] = token;
  store.save();
  return token;
}

async function ensureJobs({ prisma, store }: Seeding, accountId: number): Promise<[JobView, JobView]> {
  const jobs: JobView[] = [];
  for (const name of JOBS) {
    const row = await prisma.job.findFirst({
      where: { accountId: BigInt(accountId), name },
      orderBy: { id: 'asc' },
      include: { project: true, environment: true },
    });
    const places = { projectName: 'Analytics', environmentName: 'Production' };
    jobs.push(row === null ? await createJob(prisma, { accountId, name, ...places }) : jobView(row));
  }
  store.credentials.jobs = jobs.map(({ id, name }) => ({ id, name }));
  store.save();
  return jobs as [JobView, JobView];
}

function decrypted(secrets: SecretBox, ciphertext: string): string {
  try {
    return secrets.decrypt(ciphertext);
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error;
    throw new StartFailed(
      `The database holds secrets that ENCRYPTION_KEYS cannot read (${error.message}). Start with the keys it was filled with.`,
    );
  }
}
