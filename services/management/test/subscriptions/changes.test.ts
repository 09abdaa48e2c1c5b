import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import express from 'express';
import { HEARTBEAT, sendResponse } from '../../src/http/envelope.ts';
import { ChangeStreams } from '../../src/subscriptions/changes.ts';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import {
  failure,
  GENEROUS_TIMEOUTS,
  type Harness,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let id: string;
const openStreams: TestListener[] = [];

beforeAll(async () => {
  harness = await startHarness({}, { timeouts: { ...GENEROUS_TIMEOUTS, changesMs: 20 } });
});
beforeEach(async () => {
  account = await harness.newAccount();
  id = (await harness.newSubscription(account)).id;
});
afterEach(() => {
  for (const { close } of openStreams.splice(0)) close();
});
afterAll(() => harness.close());

interface TestListener {
  response: IncomingMessage;
  text(): string;
  /** Ids of the changed webhooks so far, repeated for each change. */
  changedIds(): string[];
  close(): void;
}

async function listen(query = '', { origin = harness.origin, method = 'GET' } = {}): Promise<TestListener> {
  const headers = { authorization: `Token ${account.token}` };
  const clientRequest = request(`${origin}${account.path('/changes')}${query}`, { method, headers }).end();
  clientRequest.on('error', () => undefined);
  const [response] = (await once(clientRequest, 'response')) as [IncomingMessage];
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  response.on('error', () => undefined);
  const listening = {
    response,
    text: () => text,
    changedIds: () =>
      [...text.matchAll(/^event: changed\ndata: (.+)$/gm)].flatMap(
        ([, data = '']) => (JSON.parse(data) as { subscription_ids: string[] }).subscription_ids,
      ),
    close: () => void clientRequest.destroy(),
  };
  openStreams.push(listening);
  return listening;
}

test('a change of a subscription is sent to the listeners of its account and to no others', async () => {
  const listening = await listen();
  expect(listening.response.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const mine = account;
  account = await harness.newAccount();
  const otherListener = await listen();
  account = mine;
  const body = { ...SUBSCRIPTION_FIELDS, name: 'Another name' };
  await harness.call('PUT', account.path(`/subscription/${id}`), { token: account.token, body });
  await eventually(() => expect(listening.changedIds()).toContain(id));

  const countBefore = listening.changedIds().filter((changedIds) => changedIds === id).length;
  await harness.database.prisma.subscription.update({ where: { id }, data: { httpStatusCode: 500 } });
  await eventually(() =>
    expect(listening.changedIds().filter((changedIds) => changedIds === id).length).toBeGreaterThan(
      countBefore,
    ),
  );

  const { id: newId } = await harness.newSubscription(account);
  await eventually(() => expect(listening.changedIds()).toContain(newId));
  await harness.call('DELETE', account.path(`/subscription/${newId}`), { token: account.token });
  await eventually(() =>
    expect(listening.changedIds().filter((changedIds) => changedIds === newId)).toHaveLength(2),
  );
  expect(otherListener.changedIds()).not.toContain(id);
});

test('a change of the log of a subscription is sent to the listeners of that subscription only', async () => {
  const [listening, otherListener] = [await listen(`?subscription_id=${id}`), await listen()];
  const delivery = { subscriptionId: id, accountId: account.id, status: 'pending', attemptCount: 0 };
  const { id: deliveryId } = await insertDelivery(harness.database, delivery);
  await eventually(() =>
    expect(listening.changedIds().filter((changedIds) => changedIds === id)).toHaveLength(1),
  );
  await harness.database.pool.query(`UPDATE deliveries SET status = 'cancelled' WHERE id = $1`, [deliveryId]);
  await eventually(() =>
    expect(listening.changedIds().filter((changedIds) => changedIds === id)).toHaveLength(2),
  );
  expect(otherListener.changedIds()).not.toContain(id);
});

test('a stream of changes sends none of another account’s log', async () => {
  const foreign = id;
  const owner = account;
  account = await harness.newAccount();
  const listening = await listen(`?subscription_id=${foreign}`);
  await insertDelivery(harness.database, { subscriptionId: foreign, accountId: owner.id });
  const { id: mine } = await harness.newSubscription(account);
  await eventually(() => expect(listening.changedIds()).toContain(mine));
  expect(listening.changedIds()).not.toContain(foreign);
});

/** Opens a stream while the table of webhooks is locked, so that the first poll waits for it. */
async function listenLocked(work: (lock: { pid: number; release(): Promise<void> }) => Promise<void>) {
  const client = await harness.database.pool.connect();
  try {
    await client.query('BEGIN; LOCK TABLE subscriptions');
    await client.query(`UPDATE subscriptions SET description = 'locked' WHERE id = $1`, [id]);
    let hasResponse = false;
    const listening = listen().finally(() => {
      hasResponse = true;
    });
    const pid = await eventually(async () => {
      const { rows } = await client.query<{ pid: number }>(
        `SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'subscriptions'::regclass`,
      );
      expect(rows).toHaveLength(1);
      return rows[0]?.pid ?? 0;
    });
    // If the headers had been sent, they would arrive before the response to a later request.
    expect((await harness.call('GET', '/api/v3/none')).status).toBe(404);
    expect(hasResponse).toBe(false);
    await work({ pid, release: async () => void (await client.query('COMMIT')) });
    return await listening;
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

test('the headers of a stream are sent once the first poll ends, so that every later change is sent', async () => {
  const listening = await listenLocked(({ release }) => release());
  await harness.database.prisma.subscription.update({ where: { id }, data: { description: 'later' } });
  await eventually(() => expect(listening.changedIds()).toEqual([id]));
});

test('a stream of changes starts although the first poll fails, and all webhooks are sent as changed', async () => {
  const listening = await listenLocked(async ({ pid, release }) => {
    await harness.database.pool.query('SELECT pg_terminate_backend($1::int)', [pid]);
    await release();
  });
  await eventually(() => expect(listening.changedIds()).toEqual([id]));
});

test('the database is not polled for changes without listeners', async () => {
  const listening = await listen();
  listening.close();
  const countPolls = async () => {
    const { rows } = await harness.database.pool.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE '%xmin::text%' AND query NOT LIKE '%pg_stat_activity%'
         AND query_start > now() - interval '0.2 s'`,
    );
    return rows[0].count;
  };
  await eventually(async () => expect(await countPolls()).toBe(0));
});

test('a stream of changes sends its retry interval, and a HEAD request ends at once', async () => {
  const listening = await listen();
  await eventually(() => expect(listening.text()).toMatch(/^retry: 2000\n\n/));
  const head = await listen('', { method: 'HEAD' });
  expect(head.response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  await once(head.response, 'end');
});

test('ten minutes of keep-alive comments of a stream are less than a kilobyte', () => {
  const chunkBytes = '3\r\n\r\n'.length + HEARTBEAT.text.length;
  expect((600_000 / HEARTBEAT.intervalMs) * chunkBytes).toBeLessThan(1_000);
});

test('a stream of changes with an invalid subscription_id is rejected by name', async () => {
  const { status, json } = await harness.call('GET', account.path('/changes?subscription_id=x'), {
    token: account.token,
  });
  expect([status, json.status.errors[0].field]).toEqual([400, 'subscription_id']);
});

test('stopping the service ends its streams of changes without waiting for their listeners', async () => {
  const second = await harness.startSecond();
  const listening = await listen('', { origin: second.origin });
  const ended = once(listening.response, 'end');
  await second.close();
  await ended;
});

test('no stream begins for a caller who disconnected before the response', async () => {
  let startedCount = 0;
  const app = express();
  const responseReady = new Promise<void>((resolve) => {
    app.get('/', async (_request, response) => {
      response.locals.request = {};
      const closed = once(response, 'close');
      response.socket?.destroy();
      await closed;
      const stream = {
        start: () => {
          startedCount += 1;
          return { ready: Promise.resolve(), close: () => undefined };
        },
      };
      await sendResponse(response, { code: 200, data: null, stream }, false);
      resolve();
    });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  await responseReady;
  server.close();
  expect(startedCount).toBe(0);
});

test('an account may have at most a hundred streams of changes', async () => {
  const listening = await Promise.all(Array.from({ length: 100 }, () => listen()));
  expect(listening.every(({ response }) => response.statusCode === 200)).toBe(true);
  const { status, json, headers } = await harness.call('GET', account.path('/changes'), {
    token: account.token,
  });
  expect({ status, json }).toEqual({ status: 429, json: failure(429, 'Too many requests.') });
  expect(headers.get('retry-after')).toBe('60');
  listening[0]?.close();
  await eventually(async () => expect((await listen()).response.statusCode).toBe(200));
});

test.each([
  ['the process', { all: 1, perAccount: 9 }, 2],
  ['an account', { all: 9, perAccount: 1 }, 1],
])(
  'only one of two streams opened concurrently begins at the limit of %s',
  (_, streamsMax, otherAccountId) => {
    const callers = { watch: () => () => undefined };
    const streams = new ChangeStreams({ database: harness.database.pool, callers, streamsMax });
    const caller = {
      principal: { kind: 'user' as const, userId: 1, memberships: [] },
      credential: { kind: 'key' as const, hash: new Uint8Array(32) },
    };
    const eventStreams = [1, otherAccountId].map((accountId) =>
      streams.open({ accountId, subscriptionId: null }, caller),
    );
    const start = (index: number) =>
      eventStreams[index]?.start({ send: () => undefined, end: () => undefined }) ?? {
        close: () => undefined,
      };
    const firstStart = start(0);
    expect(() => start(1)).toThrow('Too many requests.');
    firstStart.close();
    start(1).close();
  },
);
