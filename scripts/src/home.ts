import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Where one `npm start` keeps its things: `.runhook`, or `RUNHOOK_HOME`. */
export interface Home {
  folder: string;
  /** For scripts, while it runs. */
  devJson: string;
  /** What the demo account is known by; stays. */
  credentials: string;
  /** The encryption keys of the data; stay. */
  secrets: string;
  /** Whose the home is at the moment, and what runs in it. */
  running: string;
  logs: string;
  /** Job files for `examples/job-runner`. */
  jobs: string;
  postgres: string;
  redis: string;
}

/** @param given `RUNHOOK_HOME`; relative to the working folder, and nothing counts as not given */
export function homeAt(checkout: string, given: string | undefined): Home {
  const folder = given ? resolve(given) : join(checkout, '.runhook');
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

/** Makes the folder. As root, PostgreSQL runs under another account, which must be able to pass through. */
export function makeHome(home: Home): void {
  if (mkdirSync(home.folder, { recursive: true }) !== undefined) chmodSync(home.folder, 0o711);
}

/** Takes away what an earlier start wrote that no longer holds. Only for who has claimed the home. */
export function clearHome(home: Home): void {
  rmSync(home.devJson, { force: true });
  rmSync(home.logs, { recursive: true, force: true });
  mkdirSync(home.logs, { mode: 0o700 });
  mkdirSync(home.jobs, { recursive: true, mode: 0o700 });
}

/** `dev.json`, for scripts: everything they need to talk to what runs. */
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
  /** Of management: `/healthz`, `/readyz` and `/metrics`. */
  operationsUrl: string;
  /** Has `/healthz`, `/readyz` and `/metrics`. */
  dispatcherUrl: string;
  databaseUrl: string;
  /** The one in use, Redis or PostgreSQL. */
  queueUrl: string;
  /** Process ids; null for what runs elsewhere or not at all. */
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
 * The text of `ENCRYPTION_KEYS`: the one given, else one made on the first start and kept in `file` (600). It is as
 * long-lived as the database, because what that holds cannot be read without it.
 */
export function encryptionKeys(file: string, given: string | null): string {
  if (given !== null) return given;
  const kept = readJson(file) as { encryptionKeys?: string } | null;
  if (kept?.encryptionKeys !== undefined) return kept.encryptionKeys;
  const made = `local:${randomBytes(KEY_BYTES).toString('base64')}`;
  writePrivateJson(file, { encryptionKeys: made });
  return made;
}

/** Writes a file that only its owner can read, all at once: who reads it sees the old one or the new one. */
export function writePrivateJson(file: string, value: unknown): void {
  const unfinished = `${file}.new`;
  // One that a crash left may have another mode.
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, file);
}

/** Null when there is no such file, or none that can be read as JSON. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * What `npm run admin` adds to its environment: database, queue and address of the `npm start` that runs, with the keys it
 * made for itself. Nothing when DATABASE_URL is given, because what is kept here belongs to another database; keys that are
 * given stay.
 */
export function adminEnvironment(checkout: string, given: NodeJS.ProcessEnv): Record<string, string> {
  if (given.DATABASE_URL) return {};
  const home = homeAt(checkout, given.RUNHOOK_HOME);
  const { databaseUrl, queueUrl, baseUrl } = (readJson(home.devJson) ?? {}) as Partial<DevJson>;
  if (databaseUrl === undefined) return {};
  const { encryptionKeys } = (readJson(home.secrets) ?? {}) as { encryptionKeys?: string };
  return {
    DATABASE_URL: databaseUrl,
    ...(given.QUEUE_URL || queueUrl === undefined ? {} : { QUEUE_URL: queueUrl }),
    ...(given.RUNHOOK_URL || baseUrl === undefined ? {} : { RUNHOOK_URL: baseUrl }),
    ...(given.ENCRYPTION_KEYS || encryptionKeys === undefined ? {} : { ENCRYPTION_KEYS: encryptionKeys }),
  };
}
