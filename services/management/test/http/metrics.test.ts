import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createMetricsRegistry, registerDependencyMetrics } from '@runhook/runtime';
import { eventually } from '@runhook/testing';
import { createManagementMetrics, measureDependencies } from '../../src/metrics.ts';
import { type Harness, startHarness } from '../harness.ts';

let harness: Harness;
beforeEach(async () => {
  harness = await startHarness();
});
afterEach(() => harness.close());

async function exposed(): Promise<string> {
  return (await fetch(`${harness.operationsOrigin}/metrics`)).text();
}

test('the event of a run is counted as accepted and as relayed once, although the run is reported twice and another report is rejected', async () => {
  const account = await harness.newAccount();
  const job_id = await harness.newJob(account);
  const path = `/api/v2/accounts/${account.id}/runs/`;
  const body = { job_id, run_id: 1, engine_version: '1.9.2' };
  for (const expected of [201, 200]) {
    expect((await harness.call('POST', path, { token: account.token, body })).status).toBe(expected);
  }
  const rejected = { ...body, job_id: 999_999, run_id: 2 };
  expect((await harness.call('POST', path, { token: account.token, body: rejected })).status).toBe(400);
  await eventually(async () => {
    const text = await exposed();
    expect(text).toContain('runhook_events_accepted_total{service="management"} 1\n');
    expect(text).toContain('runhook_relayed_events_total{result="sent",service="management"} 1\n');
  });
});

test('requests are counted by the pattern of their route and not by their path', async () => {
  const account = await harness.newAccount();
  await harness.call('GET', account.path('/subscriptions'), { token: account.token });
  await harness.call('GET', account.path('/subscriptions'), { token: 'unknown' });
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

test('testing an endpoint with an internal address increases the counter of blocked addresses', async () => {
  const account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await harness.database.pool.query(
    `UPDATE subscriptions SET client_url = 'http://10.0.0.1/' WHERE id = $1`,
    [id],
  );
  await harness.call('GET', account.path(`/subscription/${id}/test`), { token: account.token });
  expect(await exposed()).toContain('runhook_blocked_addresses_total{service="management"} 1\n');
});

test('the metrics show an unavailable dependency and the events that wait in the relay', async () => {
  const registry = createMetricsRegistry({ service: 'test' });
  const dependencies = registerDependencyMetrics(registry);
  const unavailable = () => Promise.reject(new Error('away'));
  await measureDependencies({ database: unavailable, queue: async () => ({}) }, dependencies);
  const gaugeValues = (await registry.getSingleMetric('runhook_dependency_up')?.get())?.values ?? [];
  const up = gaugeValues.map(({ labels, value }) => [labels.dependency, value]);
  expect(Object.fromEntries(up)).toEqual({ database: 0, queue: 1 });

  const metrics = createManagementMetrics(registry);
  metrics.measureRelay(() => ({ events: 7, oldestSeconds: 45 }));
  const text = await registry.metrics();
  expect(text).toContain('runhook_relay_events{service="test"} 7\n');
  expect(text).toContain('runhook_relay_oldest_age_seconds{service="test"} 45\n');
});
