import { readJson, writePrivateJson } from './private-json.ts';

/** What the demo account is known by. What is missing has not been made yet. */
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
  /** Of other databases this home has been started with, by their names. */
  others?: Record<string, DemoCredentials>;
}

/** `credentials.json` as one database's own; saved after each thing that was made, so that a crash repeats none. */
export interface CredentialsStore {
  credentials: DemoCredentials;
  save(): void;
}

/** @param database says which one it is, without a password: ids and tokens mean something in that one only */
export function openCredentials(file: string, database: string): CredentialsStore {
  const { database: last, others = {}, ...found } = (readJson(file) ?? {}) as CredentialsFile;
  if (last !== undefined && last !== database) others[last] = found;
  const isSame = last === undefined || last === database;
  const credentials = isSame ? found : (others[database] ?? {});
  delete others[database];
  const rest = Object.keys(others).length === 0 ? {} : { others };
  return { credentials, save: () => writePrivateJson(file, { database, ...credentials, ...rest }) };
}

/** A name for the database of a URL: where it is and what it is called. */
export function databaseName(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port || '5432'}${pathname}`;
}
