import { expect } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createSubpartitionedDatabase,
  createTestDatabase,
  createTestQueueUrl,
  type QueueBackend,
  queueBackends,
  type Receiver,
  seedAccount,
  startReceiver,
  type TestAccount,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
  workerUrls,
} from '@runhook/testing';
import { type RunningService, startService } from '../services.ts';

interface ApiResponse<Data> {
  status: { code: number };
  data: Data;
}

export interface Delivery {
  id: string;
  status: string;
  event_type: string;
  run_id: string;
  attempt_count: number;
  attempts: { number: number; http_status_code: string }[];
}

export interface Subscription {
  id: string;
  hmac_secret: string;
  http_status_code: string;
}

/** The servers that a story runs on. */
export interface StoryCase {
  name: string;
  backend: QueueBackend;
  createDatabase(): Promise<TestDatabase>;
}

/** One case for each queue back end, PostgreSQL first. */
export const QUEUE_CASES: StoryCase[] = queueBackends().map((backend) => ({
  name: `queue on ${backend.name}`,
  backend,
  createDatabase: createTestDatabase,
}));

/** Cases with a log that is divided by account; none with Citus, which divides the log itself. */
export const DIVIDED_CASES: StoryCase[] =
  workerUrls().length > 0
    ? []
    : QUEUE_CASES.slice(-1).map(({ name, backend }) => ({
        name: `${name}, the log divided by account`,
        backend,
        createDatabase: createSubpartitionedDatabase,
      }));

/** The services, which the tests of a case share, and an account with a receiver for each test. */
export interface StoryWorld {
  account: TestAccount;
  database: PrismaDatabase;
  environment: { DATABASE_URL: string; QUEUE_URL: string };
  management: RunningService;
  dispatcher: RunningService;
  receiver: Receiver;
  /** A service token of the account. */
  token: string;
  call<Data>(method: string, path: string, body?: object): Promise<ApiResponse<Data>>;
  webhooks(rest: string): string;
  runs(rest?: string): string;
  subscribe(fields?: object): Promise<Subscription>;
  deliveriesOf(id: string): Promise<Delivery[]>;
  payloads(): ReturnType<typeof JSON.parse>[];
  /** Releases are run in reverse order. */
  afterTest(release: () => Promise<unknown>): void;
}

export type Releases = (() => Promise<unknown>)[];

export async function releaseAll(releases: Releases): Promise<void> {
  for (const release of releases.splice(0).reverse()) await release();
}

export async function startServices(world: StoryWorld, story: StoryCase, releases: Releases): Promise<void> {
  const testDatabase = await story.createDatabase();
  releases.push(() => testDatabase.drop());
  world.database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  releases.push(() => world.database.close());
  world.environment = {
    DATABASE_URL: testDatabase.url,
    QUEUE_URL: await createTestQueueUrl(story.backend, testDatabase.url),
  };
  [world.management, world.dispatcher] = await Promise.all([
    startService('management', world.environment),
    startService('dispatcher', world.environment),
  ]);
  releases.push(async () => {
    expect(await Promise.all([world.management.stop(), world.dispatcher.stop()])).toEqual([0, 0]);
  });
}

export async function seedTest(world: StoryWorld): Promise<void> {
  world.account = await seedAccount(world.database);
  const receiver = await startReceiver();
  world.receiver = receiver;
  world.afterTest(() => receiver.close());
  const token = { accountId: world.account.id, name: 'e2e', permissionSets: ['account_admin' as const] };
  world.token = (await createServiceToken(world.database.prisma, token)).token;
}

/** Returns functions that call the API for the account of the current test. */
export function createCalls(current: () => StoryWorld) {
  async function call<Data>(method: string, path: string, body?: object): Promise<ApiResponse<Data>> {
    const { management, token } = current();
    const response = await fetch(`${management.url}/api${path}`, {
      method,
      headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return (await response.json()) as ApiResponse<Data>;
  }
  const webhooks = (rest: string) => `/v3/accounts/${current().account.id}/webhooks/${rest}`;
  return {
    call,
    webhooks,
    runs: (rest = '') => `/v2/accounts/${current().account.id}/runs/${rest}`,
    subscribe: async (fields: object = {}) => {
      const body = {
        name: 'Pager',
        event_types: ['job.run.started', 'job.run.completed', 'job.run.errored'],
        client_url: `${current().receiver.url}/hook`,
        ...fields,
      };
      return (await call<Subscription>('POST', webhooks('subscriptions'), body)).data;
    },
    deliveriesOf: async (id: string) =>
      (await call<Delivery[]>('GET', webhooks(`subscription/${id}/deliveries`))).data,
    payloads: () => current().receiver.requests.map(({ body }) => JSON.parse(body.toString())),
  };
}
