import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { EventType, JobRunEvent } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { createEventPublisher } from '@runhook/publisher';
import { seedAccount, seedSubscription, type TestAccount, testEncryptionKeysText } from '@runhook/testing';
import type { Stores } from './servers.ts';
import type { World } from './world.ts';

export interface NewSubscription {
  accountId: number;
  clientUrl: string;
  name: string;
  eventTypes?: EventType[];
}

/** Seeds the record, and publishes onto the queue, with the code of one release. */
export interface ReleaseClient {
  seedAccount(): Promise<TestAccount>;
  /** Returns a service token with all permissions of the account. */
  createToken(accountId: number): Promise<string>;
  /** Returns the id of the new subscription. */
  subscribe(subscription: NewSubscription): Promise<string>;
  publish(event: JobRunEvent): Promise<void>;
  close(): Promise<void>;
}

/** Uses the code of this checkout. */
export function openReleaseClient({ database, servers }: World<Stores>): ReleaseClient {
  const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
  return {
    seedAccount: () => seedAccount(database),
    createToken: async (accountId) => {
      const token = { accountId, name: 'chaos', permissionSets: ['account_admin'] as ['account_admin'] };
      return (await createServiceToken(database.prisma, token)).token;
    },
    subscribe: async (subscription) => (await seedSubscription(database, subscription)).id,
    publish: async (event) => void (await publisher.publish(event)),
    close: () => publisher.close(),
  };
}

/**
 * Uses the code of another release in a separate process, with its Prisma Client and its publisher.
 *
 * @param checkout folder in which that release was built
 */
export async function startReleaseClient(
  checkout: string,
  { servers }: World<Stores>,
): Promise<ReleaseClient> {
  const script = fileURLToPath(new URL('./release-client.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, checkout], {
    env: {
      DATABASE_URL: servers.databaseUrl,
      QUEUE_URL: servers.queueUrl,
      ENCRYPTION_KEYS: testEncryptionKeysText,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child, 'spawn');
  const call = callsOf(child);
  return {
    seedAccount: async () => (await call('seedAccount')) as TestAccount,
    createToken: async (accountId) => (await call('createToken', accountId)) as string,
    subscribe: async (subscription) => (await call('subscribe', subscription)) as string,
    publish: async (event) => void (await call('publish', event)),
    close: async () => {
      child.stdin?.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

interface Reply {
  id: number;
  result?: unknown;
  error?: string;
}

/** Sends each call as a line of JSON, and settles it with the reply of the same id. */
function callsOf({ stdin, stdout }: ChildProcess): (name: string, argument?: unknown) => Promise<unknown> {
  const pending = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  let lastId = 0;
  const lines = createInterface({ input: stdout as NonNullable<typeof stdout> });
  lines.on('line', (line) => {
    const { id, result, error } = JSON.parse(line) as Reply;
    const call = pending.get(id);
    pending.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(error));
  });
  lines.on('close', () => {
    for (const { reject } of pending.values())
      reject(new Error('the client of the other release has exited'));
  });
  return (name, argument) =>
    new Promise((resolve, reject) => {
      lastId += 1;
      pending.set(lastId, { resolve, reject });
      stdin?.write(`${JSON.stringify({ id: lastId, name, argument })}\n`);
    });
}
