import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The paths of one `npm start`, below `.runhook` or `RUNHOOK_HOME`. */
export interface Home {
  folder: string;
  /** For scripts; exists while `npm start` runs. */
  devJson: string;
  /** Credentials of the demo account, retained between runs. */
  credentials: string;
  /** Encryption keys of the data, retained between runs. */
  secrets: string;
  /** The owner of the home folder, and the processes that it started. */
  running: string;
  logs: string;
  /** Job files for `examples/job-runner`. */
  jobs: string;
  postgres: string;
  redis: string;
}

/** @param homeSetting the value of `RUNHOOK_HOME`, relative to the working folder; an empty value counts as unset */
export function resolveHome(checkout: string, homeSetting: string | undefined): Home {
  const folder = homeSetting ? resolve(homeSetting) : join(checkout, '.runhook');
  return {
    folder,
    devJson: join(folder, 'dev.json'),
    credentials: join(folder, 'credentials.json'),
    secrets: join(folder, 'secrets.json'),
    running: join(folder, 'running.json'),
    logs: join(folder, 'logs'),
    jobs: join(folder, 'jobs'),
    postgres: join(folder, 'postgres'),
    redis: join(folder, 'redis'),
  };
}

/** Creates the folder. It is traversable, because PostgreSQL runs under another account if this process is root. */
export function makeHome(home: Home): void {
  if (mkdirSync(home.folder, { recursive: true }) !== undefined) chmodSync(home.folder, 0o711);
}

/** Removes the files of an earlier start. The caller must have claimed the home folder. */
export function clearHome(home: Home): void {
  rmSync(home.devJson, { force: true });
  rmSync(home.logs, { recursive: true, force: true });
  mkdirSync(home.logs, { mode: 0o700 });
  mkdirSync(home.jobs, { recursive: true, mode: 0o700 });
}

/** The content of `dev.json`: the addresses and credentials that scripts need to use the running services. */
export interface DevJson {
  baseUrl: string;
  account: { id: number; identifier: string };
  user: { id: number; email: string; password: string; apiKey: string };
  /** Permission set `account_admin`. */
  serviceToken: string;
  /** Permission set `job_runner`. */
  runnerToken: string;
  jobs: { id: number; name: string }[];
  subscription: { id: string; hmacSecret: string };
  receiverUrl: string;
  /** Management's `/healthz`, `/readyz` and `/metrics`. */
  operationsUrl: string;
  /** Serves `/healthz`, `/readyz` and `/metrics`. */
  dispatcherUrl: string;
  /** With the login of the embedded database's superuser. */
  databaseUrl: string;
  /** With the login of management. */
  managementDatabaseUrl: string;
  /** The queue in use, on Redis or PostgreSQL. */
  queueUrl: string;
  /** Process ids; null if the server is external or not used. */
  processes: {
    management: number;
    dispatcher: number;
    receiver: number;
    postgres: number | null;
    redis: number | null;
  };
}

const KEY_BYTES = 32;

/**
 * Returns a value for `ENCRYPTION_KEYS`: the configured one, or one that the first start generates and stores in `file` (mode 600).
 * The data cannot be read without it, so it is retained as long as the database.
 */
export function readOrCreateEncryptionKeys(file: string, configuredKeys: string | null): string {
  if (configuredKeys !== null) return configuredKeys;
  const stored = readJson(file) as { encryptionKeys?: string } | null;
  if (stored?.encryptionKeys !== undefined) return stored.encryptionKeys;
  const createdKeys = `local:${randomBytes(KEY_BYTES).toString('base64')}`;
  writePrivateJson(file, { encryptionKeys: createdKeys });
  return createdKeys;
}

/** Writes a file that only its owner can read. The replacement is atomic: a reader sees the old or the new content. */
export function writePrivateJson(file: string, value: unknown): void {
  const temporaryFile = `${file}.new`;
  // A file that a crash left may have another mode.
  rmSync(temporaryFile, { force: true });
  writeFileSync(temporaryFile, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporaryFile, file);
}

/** Returns null if the file is missing or is not valid JSON. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Returns the variables that `npm run admin` adds to its environment: database, queue and URL of the running `npm start`, with its
 * generated keys. Returns none if DATABASE_URL is set, because the stored keys belong to another database. Variables that are set
 * are not replaced.
 */
export function adminEnvironment(checkout: string, configured: NodeJS.ProcessEnv): Record<string, string> {
  if (configured.DATABASE_URL) return {};
  const home = resolveHome(checkout, configured.RUNHOOK_HOME);
  const dev = (readJson(home.devJson) ?? {}) as Partial<DevJson>;
  const { managementDatabaseUrl: databaseUrl, baseUrl } = dev;
  if (databaseUrl === undefined) return {};
  const isInDatabase = dev.queueUrl !== undefined && dev.queueUrl === dev.databaseUrl;
  const queueUrl = isInDatabase ? databaseUrl : dev.queueUrl;
  const { encryptionKeys } = (readJson(home.secrets) ?? {}) as {
    encryptionKeys?: string;
  };
  return {
    DATABASE_URL: databaseUrl,
    ...(configured.QUEUE_URL || queueUrl === undefined ? {} : { QUEUE_URL: queueUrl }),
    ...(configured.RUNHOOK_URL || baseUrl === undefined ? {} : { RUNHOOK_URL: baseUrl }),
    ...(configured.ENCRYPTION_KEYS || encryptionKeys === undefined
      ? {}
      : { ENCRYPTION_KEYS: encryptionKeys }),
  };
}
