import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openDatabase, type Pool } from '@runhook/database';
import {
  eventually,
  type ReplicatedPostgres,
  startReplicatedPostgres,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { insertDelivery } from './deliveries/delivery-rows.ts';
import { type Harness, type Json, type SecondManagement, startHarness, type TestAccount } from './harness.ts';

/** A maximum lag that exceeds the duration of the tests, so that any lag is permitted. */
const UNBOUNDED_MS = 600_000;
const BOUND_MS = 500;

let servers: ReplicatedPostgres;
let harness: Harness;
let replica: Pool;
let proxy: TcpProxy;
let account: TestAccount;
let webhookId: string;

beforeAll(async () => {
  servers = await startReplicatedPostgres();
  process.env.TEST_POSTGRES_URL = servers.primaryUrl;
  harness = await startHarness(async (databaseUrl) => {
    const url = new URL(servers.replicaUrl);
    url.pathname = new URL(databaseUrl).pathname;
    replica = openDatabase({ url: url.href }).pool;
    proxy = await startTcpProxy(url.href);
    return { databaseReplicaUrl: proxy.url, databaseReplicaMaxLagMs: UNBOUNDED_MS };
  });
});

afterAll(async () => {
  await harness.close();
  await replica.end();
  await proxy.close();
  await servers.close();
});

beforeEach(async () => {
  account = await harness.newAccount();
  webhookId = (await harness.newSubscription(account)).id;
  await readFromReplica(harness);
});

type Process = Pick<SecondManagement, 'call' | 'operationsOrigin'>;

const countListed = async (process: Process, token = account.token): Promise<number> => {
  const { status, json } = await process.call('GET', account.path('/deliveries'), { token });
  expect({ status, json }).toMatchObject({ status: 200 });
  return json.data.length;
};

const readsOf = async ({ operationsOrigin }: Process) => {
  const text = await (await fetch(`${operationsOrigin}/metrics`)).text();
  const count = (server: string) =>
    Number(
      new RegExp(`^runhook_replica_reads_total\\{.*server="${server}".*\\} (\\d+)$`, 'm').exec(text)?.[1],
    );
  return { replica: count('replica'), primary: count('primary') };
};

/** Waits until the replica is read and shows the changes of the account. */
async function readFromReplica(process: Process): Promise<void> {
  await eventually(async () => {
    const readsBefore = await readsOf(process);
    await countListed(process);
    const readsAfter = await readsOf(process);
    expect(readsAfter).toEqual({ replica: expect.any(Number), primary: readsBefore.primary });
    expect(readsAfter.replica).toBeGreaterThan(readsBefore.replica);
  });
}

const newDelivery = async () =>
  (await insertDelivery(harness.database, { accountId: account.id, subscriptionId: webhookId })).id;

const countOnReplica = async () =>
  (await replica.query('SELECT FROM deliveries WHERE account_id = $1', [account.id])).rowCount;

describe('while the replica has stopped replaying', () => {
  let replicatedId: string;

  beforeEach(async () => {
    replicatedId = await newDelivery();
    await eventually(async () => expect(await countOnReplica()).toBe(1));
    await replica.query('SELECT pg_wal_replay_pause()');
    await eventually(async () => {
      const { rows } = await replica.query('SELECT pg_get_wal_replay_pause_state() AS state');
      expect(rows).toEqual([{ state: 'paused' }]);
    });
    await newDelivery();
  });

  afterEach(async () => void (await replica.query('SELECT pg_wal_replay_resume()')));

  test('lists show its state within the maximum lag, and single objects are current', async () => {
    const lateId = await newDelivery();
    expect(await countListed(harness)).toBe(1);
    const path = account.path(`/subscription/${webhookId}/delivery/${lateId}`);
    expect((await harness.call('GET', path, { token: account.token })).status).toBe(200);
    for (const suffix of ['/deliveries/histogram', `/subscription/${webhookId}/deliveries`, '/incidents'])
      expect((await harness.call('GET', account.path(suffix), { token: account.token })).status).toBe(200);
    const { json } = await harness.call('GET', account.path(`/subscription/${webhookId}/deliveries`), {
      token: account.token,
    });
    expect(json.data.map(({ id }: Json) => id)).toEqual([replicatedId]);
  });

  test('lists come from the primary once the maximum lag is exceeded', async () => {
    const second = await harness.startSecond({ databaseReplicaMaxLagMs: BOUND_MS });
    try {
      await eventually(async () => expect(await countListed(second)).toBe(2));
      expect((await readsOf(second)).primary).toBeGreaterThan(0);
      await newDelivery();
      expect(await countListed(second)).toBe(3);
      expect(await countListed(harness)).toBe(1);
    } finally {
      await second.close();
    }
  });

  test('an account that has changed something reads its own changes', async () => {
    const otherToken = await harness.newToken(account, ['read_only']);
    expect(await countListed(harness, otherToken)).toBe(1);
    await harness.newSubscription(account);
    expect(await countListed(harness, otherToken)).toBe(2);
  });

  test('a job runner reads its own reports at once, and other callers still read from the replica', async () => {
    const runs = `/api/v2/accounts/${account.id}/runs/`;
    const runner = await harness.newToken(account, ['job_runner']);
    const body = { job_id: await harness.newJob(account), engine_version: '1.0' };
    const report = await harness.call('POST', runs, { token: runner, body });
    expect(report.status).toBe(201);
    const count = async (token: string) => (await harness.call('GET', runs, { token })).json.data.length;
    expect(await count(runner)).toBe(1);
    expect(await count(account.token)).toBe(0);
  });

  test('a revoked token is rejected at once, although the replica still has it', async () => {
    await harness.database.prisma.serviceToken.updateMany({
      where: { accountId: BigInt(account.id) },
      data: { revokedAt: new Date() },
    });
    const { rows } = await replica.query('SELECT revoked_at FROM service_tokens WHERE account_id = $1', [
      account.id,
    ]);
    expect(rows).toEqual([{ revoked_at: null }]);
    const { token } = account;
    expect((await harness.call('GET', account.path('/deliveries'), { token })).status).toBe(401);
  });
});

test('the replica has no lag while nothing is written', async () => {
  const second = await harness.startSecond({ databaseReplicaMaxLagMs: BOUND_MS });
  try {
    await readFromReplica(second);
  } finally {
    await second.close();
  }
});

test('no request fails while the replica hangs, is killed, and restarts', async () => {
  // The timeouts of production, so that requests do not wait longer.
  const second = await harness.startSecond({}, {});
  try {
    await newDelivery();
    await readFromReplica(second);
    proxy.stall();
    await Promise.all(Array.from({ length: 20 }, async () => expect(await countListed(second)).toBe(1)));
    await servers.killReplica();
    for (let reads = 0; reads < 20; reads += 1) expect(await countListed(second)).toBe(1);
    expect((await fetch(`${second.operationsOrigin}/readyz`)).status).toBe(200);
    await proxy.restore();
    await servers.startReplica();
    await readFromReplica(second);
  } finally {
    await proxy.restore();
    await second.close();
  }
});

test('a DATABASE_REPLICA_URL of a server that is not a replica is ignored', async () => {
  const second = await harness.startSecond({ databaseReplicaUrl: harness.settings.databaseUrl });
  try {
    for (let reads = 0; reads < 5; reads += 1) await countListed(second);
    expect((await readsOf(second)).replica).toBe(0);
  } finally {
    await second.close();
  }
});
