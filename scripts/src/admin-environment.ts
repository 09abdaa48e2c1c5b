import type { DevJson } from './dev-json.ts';
import { homeAt } from './home.ts';
import { readJson } from './private-json.ts';

/**
 * What `npm run admin` adds to its environment: the database of the `npm start` that runs, with the keys it made for
 * itself. Nothing when DATABASE_URL is given, because what is kept here belongs to another database; keys that are
 * given stay.
 */
export function adminEnvironment(checkout: string, given: NodeJS.ProcessEnv): Record<string, string> {
  if (given.DATABASE_URL) return {};
  const home = homeAt(checkout, given.RUNHOOK_HOME);
  const { databaseUrl } = (readJson(home.devJson) ?? {}) as Partial<DevJson>;
  if (databaseUrl === undefined) return {};
  const { encryptionKeys } = (readJson(home.secrets) ?? {}) as { encryptionKeys?: string };
  return {
    DATABASE_URL: databaseUrl,
    ...(given.ENCRYPTION_KEYS || encryptionKeys === undefined ? {} : { ENCRYPTION_KEYS: encryptionKeys }),
  };
}
