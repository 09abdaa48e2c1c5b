import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { createManagement } from '../src/app.ts';
import { failure, GENEROUS_TIMEOUTS, type Harness, startHarness } from './harness.ts';

let harness: Harness;

beforeEach(async () => {
  harness = await startHarness();
});

afterEach(() => harness.close());

test('the probes respond without a token on both ports', async () => {
  for (const path of ['/healthz', '/readyz']) {
    await eventually(async () =>
      expect(await harness.call('GET', path)).toMatchObject({ status: 200, json: { ok: true } }),
    );
    const response = await fetch(harness.operationsOrigin + path);
    expect([response.status, await response.json()]).toMatchObject([200, { ok: true }]);
  }
});

test('the port for operations serves the metrics and nothing of the API', async () => {
  const metrics = await fetch(`${harness.operationsOrigin}/metrics`);
  expect(await metrics.text()).toContain('service="management"');
  expect(await harness.call('GET', '/metrics')).toMatchObject({
    status: 404,
    json: failure(404, 'Not found.'),
  });
  expect((await fetch(`${harness.operationsOrigin}/api/v2/accounts`)).status).toBe(404);
});

test('a service whose port is in use does not start and leaves no connection open', async () => {
  const port = Number(new URL(harness.origin).port);
  await expect(createManagement({ ...harness.settings, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('a stopped service refuses connections, and has closed idle ones of clients and its own to the database', async () => {
  const second = await createManagement({ ...harness.settings, port: 0 }, { timeouts: GENEROUS_TIMEOUTS });
  const origin = `http://127.0.0.1:${second.port}`;
  await eventually(async () => expect((await fetch(`${origin}/readyz`)).status).toBe(200));
  const connections = async () => {
    const { rows } = await harness.database.pool.query(
      'SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database()',
    );
    return rows[0].count;
  };
  const connectionsBefore = await connections();
  const unused = connect(second.port, '127.0.0.1');
  await once(unused, 'connect');
  const closed = once(unused, 'close', { signal: AbortSignal.timeout(WAIT_TIMEOUT_MS) });
  unused.resume();
  await second.close();
  await closed;
  await expect(fetch(`${origin}/readyz`)).rejects.toThrow();
  // PostgreSQL counts a connection until its process has ended, shortly after it was closed.
  await eventually(async () => expect(await connections()).toBeLessThan(connectionsBefore));
});
