import { randomBytes } from 'node:crypto';
import { rotatingSecret, secretsAt } from '@runhook/contract';
import {
  addMembership,
  createAccount,
  createJob,
  createSecretBox,
  createServiceToken,
  createUser,
  hashCredential,
  type JobView,
  jobView,
  type PermissionSet,
  parseEncryptionKeys,
  type SecretBox,
  SecretBoxError,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaClient } from '@runhook/database/prisma';
import { type Home, readJson, readOrCreateEncryptionKeys, writePrivateJson } from './home.ts';
import { migrateStores, type ServiceLogins } from './service-logins.ts';
import { StartFailed, type StartSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';

/** The contents of the database that other parts need: tables, secrets, and the demo account. */
export interface DatabaseContents {
  demo: DemoAccount;
  store: CredentialsStore;
  /** A value for `ENCRYPTION_KEYS`. */
  encryptionKeysText: string;
}

export async function fillDatabase(
  { terminal, home, signal }: { terminal: Terminal; home: Home; signal: AbortSignal },
  settings: StartSettings,
  { databaseUrl, queueUrl, logins }: { databaseUrl: string; queueUrl: string; logins: ServiceLogins },
): Promise<DatabaseContents> {
  const applied = (names: string[]) =>
    names.length === 0 ? 'migrations: none to apply' : `migrations applied: ${names.length}`;
  const { logRetentionDays } = settings;
  const migrating = () => migrateStores({ databaseUrl, queueUrl, logRetentionDays }, logins).catch(fail);
  await terminal.step('migrations', migrating, applied);
  signal.throwIfAborted();

  const encryptionKeysText = await terminal.step(
    'secrets',
    () => readOrCreateEncryptionKeys(home.secrets, settings.encryptionKeys),
    () => `secrets: ${settings.encryptionKeys === null ? 'a generated key' : 'the keys of ENCRYPTION_KEYS'}`,
  );
  const secrets = createSecretBox(parseEncryptionKeys(encryptionKeysText));
  const name = settings.databaseUrl === null ? 'embedded' : databaseName(settings.databaseUrl);
  const store = openCredentials(home.credentials, name);
  const demo = await terminal.step(
    'demo account',
    async () => {
      const database = openPrismaDatabase({ url: databaseUrl });
      try {
        return await seedDemo({ prisma: database.prisma, secrets, store });
      } finally {
        await database.close();
      }
    },
    ({ account, wasSeeded }) => `demo account ${account.id} ${wasSeeded ? 'was created' : 'already exists'}`,
  );
  signal.throwIfAborted();
  return { demo, store, encryptionKeysText };
}

/** Omits the stack, because the message of a migration error is complete. */
function fail(error: Error): never {
  throw new StartFailed(`The migrations could not be applied: ${error.message.trim()}`);
}

const PASSWORD_BYTES = 15;
const JOBS = ['Nightly build', 'Hourly load'];

/** The demo account as stored in the database. */
export interface DemoAccount extends Required<Omit<DemoCredentials, 'subscription' | 'jobs'>> {
  jobs: [succeeding: JobView, failing: JobView];
  /** Whether anything was created. */
  wasSeeded: boolean;
}

interface Seeding {
  prisma: PrismaClient;
  secrets: SecretBox;
  store: CredentialsStore;
}

/**
 * Creates the data of the demonstration that the database lacks: an account, its user, two service tokens and two jobs. Existing
 * data are not changed.
 */
async function seedDemo(seeding: Seeding): Promise<DemoAccount> {
  const previousCredentials = JSON.stringify(seeding.store.credentials);
  const account = await ensureAccount(seeding);
  const user = await ensureUser(seeding, account.id);
  const serviceToken = await ensureToken(seeding, account.id, 'serviceToken', 'demo-admin', 'account_admin');
  const runnerToken = await ensureToken(seeding, account.id, 'runnerToken', 'demo-runner', 'job_runner');
  const jobs = await ensureJobs(seeding, account.id);
  await refreshHmacSecret(seeding);
  const wasSeeded = JSON.stringify(seeding.store.credentials) !== previousCredentials;
  return { account, user, serviceToken, runnerToken, jobs, wasSeeded };
}

async function ensureAccount({ prisma, store }: Seeding): Promise<{ id: number; identifier: string }> {
  const { credentials } = store;
  const identifier = credentials.account?.identifier;
  const row = identifier === undefined ? null : await prisma.account.findUnique({ where: { identifier } });
  if (row !== null) return { id: Number(row.id), identifier: row.identifier };
  // The database is another or an empty one, so stored credentials do not apply.
  for (const name of Object.keys(credentials)) delete credentials[name as keyof DemoCredentials];
  const plan = { plan: 'enterprise', deployment: 'multi_tenant' } as const;
  const account = await createAccount(prisma, { name: 'Demo', ...plan });
  credentials.account = account;
  store.save();
  return account;
}

async function ensureUser({ prisma, secrets, store }: Seeding, accountId: number) {
  const { credentials } = store;
  const stored = credentials.user;
  const row =
    stored === undefined ? null : await prisma.user.findUnique({ where: { id: BigInt(stored.id) } });
  if (stored !== undefined && row !== null && row.email === stored.email) {
    // The key may have been rotated.
    credentials.user = { ...stored, apiKey: decryptIfPossible(secrets, row.apiKeyCiphertext) };
  } else {
    const email = await findFreeEmail(prisma);
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

/** Returns an unused address, because a shared database may contain another demo user. */
async function findFreeEmail(prisma: PrismaClient): Promise<string> {
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
  const stored = store.credentials[field];
  if (stored !== undefined) {
    const row = await prisma.serviceToken.findUnique({ where: { tokenHash: hashCredential(stored) } });
    if (row !== null && row.revokedAt === null) return stored;
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
      where: { accountId: BigInt(accountId), name, deletedAt: null },
      orderBy: { id: 'asc' },
      include: { project: true, environment: true },
    });
    const projectAndEnvironment = { projectName: 'Analytics', environmentName: 'Production' };
    jobs.push(
      row === null ? await createJob(prisma, { accountId, name, ...projectAndEnvironment }) : jobView(row),
    );
  }
  store.credentials.jobs = jobs.map(({ id, name }) => ({ id, name }));
  store.save();
  return jobs as [JobView, JobView];
}

/** The secret of the demo's subscription may have been rotated. Its overlap, if it has one, may have ended. */
async function refreshHmacSecret({ prisma, secrets, store }: Seeding): Promise<void> {
  const { subscription } = store.credentials;
  if (subscription === undefined) return;
  const row = await prisma.subscription.findUnique({ where: { id: subscription.id } });
  if (row === null) return;
  const { hmacSecretCiphertext, nextHmacSecretCiphertext, rotationEndsAt } = row;
  const endsAtMicros = BigInt(rotationEndsAt?.getTime() ?? 0) * 1000n;
  const secret = rotatingSecret(hmacSecretCiphertext, nextHmacSecretCiphertext, endsAtMicros);
  const [current] = secretsAt(secret, Date.now(), (ciphertext) => decryptIfPossible(secrets, ciphertext));
  store.credentials.subscription = { ...subscription, hmacSecret: current };
  store.save();
}

function decryptIfPossible(secrets: SecretBox, ciphertext: string): string {
  try {
    return secrets.decrypt(ciphertext);
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error;
    throw new StartFailed(
      `ENCRYPTION_KEYS cannot decrypt the secrets in the database (${error.message}). Start with the keys that encrypted them.`,
    );
  }
}

/** The credentials of the demo account. A missing field has not been created yet. */
export interface DemoCredentials {
  account?: { id: number; identifier: string };
  user?: { id: number; email: string; password: string; apiKey: string };
  /** Permission set `account_admin`. */
  serviceToken?: string;
  /** Permission set `job_runner`. */
  runnerToken?: string;
  jobs?: { id: number; name: string }[];
  subscription?: { id: string; hmacSecret: string };
}

interface CredentialsFile extends DemoCredentials {
  database?: string;
  /** Credentials for other databases that this home folder was used with, by the name of the database. */
  others?: Record<string, DemoCredentials>;
}

/** The part of `credentials.json` for one database. It is saved after each creation, so that a crash repeats none. */
export interface CredentialsStore {
  credentials: DemoCredentials;
  save(): void;
}

/** @param database identifies the database, without a password, because ids and tokens apply to one database only */
export function openCredentials(file: string, database: string): CredentialsStore {
  const {
    database: lastContents,
    others: otherDatabases = {},
    ...found
  } = (readJson(file) ?? {}) as CredentialsFile;
  if (lastContents !== undefined && lastContents !== database) otherDatabases[lastContents] = found;
  const isSameDatabase = lastContents === undefined || lastContents === database;
  const credentials = isSameDatabase ? found : (otherDatabases[database] ?? {});
  delete otherDatabases[database];
  const rest = Object.keys(otherDatabases).length === 0 ? {} : { others: otherDatabases };
  return { credentials, save: () => writePrivateJson(file, { database, ...credentials, ...rest }) };
}

/** Returns a name for the database of a URL: its host, port and path. */
export function databaseName(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port || '5432'}${pathname}`;
}
