import { createSecretBox, parseEncryptionKeys } from '@runhook/database';
import { migrate } from '@runhook/database/migrate';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { type CredentialsStore, databaseName, openCredentials } from './credentials.ts';
import { encryptionKeys } from './encryption-keys.ts';
import type { Home } from './home.ts';
import { type DemoAccount, seedDemo } from './seed.ts';
import type { StartSettings } from './settings.ts';
import { StartFailed } from './start-failed.ts';
import type { Terminal } from './terminal.ts';

/** The data that everything else needs: tables, secrets, and the demo account. */
export interface DatabaseContents {
  demo: DemoAccount;
  store: CredentialsStore;
  /** The text of `ENCRYPTION_KEYS`. */
  encryptionKeysText: string;
}

export async function fillDatabase(
  { terminal, home, signal }: { terminal: Terminal; home: Home; signal: AbortSignal },
  settings: StartSettings,
  databaseUrl: string,
): Promise<DatabaseContents> {
  const applied = (names: string[]) =>
    names.length === 0 ? 'migrations: none to apply' : `migrations applied: ${names.length}`;
  await terminal.step('migrations', () => migrate(databaseUrl).catch(fail), applied);
  signal.throwIfAborted();

  const encryptionKeysText = await terminal.step(
    'secrets',
    () => encryptionKeys(home.secrets, settings.encryptionKeys),
    () => `secrets: ${settings.encryptionKeys === null ? 'a key of our own' : 'the keys of ENCRYPTION_KEYS'}`,
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
    ({ account, wasSeeded }) => `demo account ${account.id} ${wasSeeded ? 'seeded' : 'is there already'}`,
  );
  signal.throwIfAborted();
  return { demo, store, encryptionKeysText };
}

/** The engine's errors have a text that says it all, and a stack of WebAssembly. */
function fail(error: Error): never {
  throw new StartFailed(`The migrations could not be applied: ${error.message.trim()}`);
}
