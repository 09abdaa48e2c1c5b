import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { createMetricsRegistry, registerDependencyMetrics } from '@runhook/runtime';
import { eventually, IN_VAIN_MS, startTcpProxy } from '@runhook/testing';
import { createOutboxMeasure } from '../../src/metrics.ts';
import { type Harness, startHarness } from '../harness.ts';

let harness: Harness;
beforeEach(async () => {
  harness = await startHarness();
});
afterEach(() => harness.close());

async function exposed(): Promise<string> {
  return (await fetch(`${harness.operationsOrigin}/metrics`)).text();
}

test('an event that is accepted over REST is counted when it is committed, and again when it is relayed', async () => {
  const account = await harness.newAccount();
  const job_id = await harness.newJob(account);
  const path = `/api/v2/accounts/${account.id}/runs/`;
  const body = { job_id, run_id: 1, engine_version: '1.9.2' };
  for (const expected of [201, 200]) {
    expect((await harness.call('POST', path, { token: account.token, body })).status).toBe(expected);
  }
  const refused = { ...body, job_id: 999_999, run_id: 2 };
  expect((await harness.call('POST', path, { token: account.token, body: refused })).status).toBe(400);
  await eventually(async () => {
    const text = await exposed();
    expect(text).toContain('runhook_events_accepted_total{service="management"} 1\n');
    expect(text).toContain('runhook_relayed_events_total{result="sent",service="management"} 1\n');
  });
});

test('requests are counted by the pattern of their route, whatever their path', async () => {
  const account = await harness.newAccount();
  await harness.call('GET', account.path('/subscriptions'), { token: account.token });
  await harness.call('GET', account.path('/subscriptions'), { token: 'nobody' });
  await fetch(`${harness.origin}/nothing/${account.id}/here`);
  await fetch(`${harness.origin}/nothing`, { method: 'PROPFIND' });
  await eventually(async () => {
    const text = await exposed();
    const route = '/api/v3/accounts/:account_id/webhooks/subscriptions';
    for (const labels of [
      `method="GET",route="${route}",status_class="2xx"`,
      `method="GET",route="${route}",status_class="4xx"`,
      'method="GET",route="none",status_class="4xx"',
      'method="other",route="none",status_class="4xx"',
    ]) {
      expect(text).toContain(`runhook_http_requests_total{${labels},service="management"} 1\n`);
    }
    expect(text).not.toContain('nothing');
    expect(text).not.toContain('PROPFIND');
  });
});

test('a test of an endpoint that leads inside is counted as a blocked address', async () => {
  const account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await harness.database.pool.query(
    `UPDATE subscriptions SET client_url = 'http://10.0.0.1/' WHERE id = $1`,
    [id],
  );
  await harness.call('GET', account.path(`/subscription/${id}/test`), { token: account.token });
  expect(await exposed()).toContain('runhook_blocked_addresses_total{service="management"} 1\n');
});

test('the outbox has an age and a number, and neither while the database is away', async () => {
  const proxy = await startTcpProxy(harness.settings.databaseUrl);
  const database = openDatabase({
    url: proxy.url,
    connectTimeoutMs: IN_VAIN_MS,
    onConnectionError: () => undefined,
  });
  const registry = createMetricsRegistry({ service: 'test' });
  const measure = createOutboxMeasure({
    pool: database.pool,
    relay: { emptyUpTo: 0n },
    queue: { counts: async () => ({}) },
    dependencies: registerDependencyMetrics(registry),
    registry,
  });
  const read = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
  // A place in the outbox that the service's own relay does not get to see.
  const client = await harness.database.pool.connect();
  await client.query(`SELECT pg_advisory_lock(hashtext('runhook.relay'))`);
  try {
    const account = await harness.newAccount();
    await client.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
       VALUES (current_date, 'wev_x', $1, 'job.run.started', '', '{}', now() - interval '45 s')`,
      [account.id],
    );
    await client.query(`INSERT INTO outbox (day, event_id) VALUES (current_date, 'wev_x')`);
    await measure();
    expect(await read('runhook_outbox_events')).toMatchObject([{ value: 1 }]);
    const [age] = await read('runhook_outbox_oldest_age_seconds');
    expect(age?.value).toBeGreaterThanOrEqual(45);
    await proxy.cut();
    await measure();
    expect(await read('runhook_outbox_events')).toEqual([]);
    expect(await read('runhook_outbox_oldest_age_seconds')).toEqual([]);
    const dependencies = await read('runhook_dependency_up');
    const up = dependencies.map(({ labels, value }) => [labels.dependency, value]);
    expect(Object.fromEntries(up)).toEqual({ database: 0, queue: 1 });
  } finally {
    await client.query('DELETE FROM outbox');
    client.release(true);
    await database.close();
    await proxy.close();
  }
});
