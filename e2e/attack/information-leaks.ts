import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEgress } from '@runhook/egress/client';
import { eventually, queueBackends } from '@runhook/testing';
import { startDnsServer } from '../../packages/egress/test/dns-server.ts';
import { callApi, openSystem, type System } from '../observability/system.ts';
import type { RunningService } from '../services.ts';
import type { Attack } from './attack.ts';

/** Tries to learn what the network of the service and other users of the account must not show. */
export const informationLeaks: Attack = {
  name: 'information leaks',
  async run({ log }) {
    const rows: [string, string][] = [];
    const problems: string[] = [];
    const report = (name: string, found: string[]) => {
      rows.push([name, found.length === 0 ? 'nothing' : found.join('; ')]);
      problems.push(...found.map((problem) => `${name}: ${problem}`));
      log(`${name}: ${found.length} problems`);
    };
    report('names and connections of other accounts', await compareAccounts());
    const world = await openWorld();
    try {
      report('rules of blocked targets', await compareBlockedTargets(world));
      report('echoed secrets', await findEchoes(world));
    } finally {
      await world.system.close();
    }
    const lines = rows.map(([name, learned]) => `| ${name} | ${learned} |`);
    return { table: ['| attempt to learn | learned |', '|---|---|', ...lines].join('\n'), problems };
  },
};

/** Calls the same name for two accounts: the second must wait for DNS and for a connection as the first did. */
async function compareAccounts(): Promise<string[]> {
  const server = createServer((_request, response) => void response.end('ok')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // The resolver waits a second for the other family, so that lookups are much slower than results from a cache.
  const dns = await startDnsServer((_name, type) => (type === 1 ? { a: '127.0.0.1' } : 'silent'));
  const egress = createEgress({
    allowCidrs: ['127.0.0.1/32'],
    timeoutMs: 10_000,
    dnsServers: [dns.address],
  });
  const url = `http://shared.test:${(server.address() as AddressInfo).port}/`;
  const post = async (accountId: number) =>
    (await egress.post({ accountId, url, headers: {}, body: '{}' })).timings;
  try {
    const [first, repeated, second] = [await post(1), await post(1), await post(2)];
    const isReused = first !== null && repeated?.connectMs === null;
    if (!isReused) return ['the attack is invalid: an account does not reuse its connections'];
    if (second === null || second.connectMs === null)
      return ['an account uses the connection of another one'];
    const isFast = (second.dnsMs ?? 0) < (first.dnsMs ?? 0) / 2;
    return isFast ? [`a name took ${first.dnsMs} ms, and ${second.dnsMs} ms for another account`] : [];
  } finally {
    egress.close();
    server.close();
    await dns.close();
  }
}

interface World {
  system: System;
  management: RunningService;
  jobId: unknown;
}

async function openWorld(): Promise<World> {
  const backend = queueBackends().at(-1);
  if (!backend) throw new Error('there is no queue back end');
  const system = await openSystem(backend);
  const settings = { EGRESS_PORTS: String(system.receiver.port), DELIVERY_MAX_RETRIES: '0' };
  const management = await system.start('management', settings);
  await system.start('dispatcher', settings);
  const names = { name: 'Leaks', project_name: 'Leaks', environment_name: 'Leaks' };
  const path = `/v2/accounts/${system.account.id}/jobs/`;
  const { data } = await callApi(system, management, { method: 'POST', path, body: names });
  return { system, management, jobId: data.id };
}

const webhooksPath = ({ system }: World, suffix: string) =>
  `/v3/accounts/${system.account.id}/webhooks${suffix}`;

async function get(world: World, suffix: string): Promise<Record<string, unknown>> {
  const { data } = await callApi(world.system, world.management, {
    method: 'GET',
    path: webhooksPath(world, suffix),
  });
  return data;
}

async function createWebhook(world: World, fields: object): Promise<string> {
  const body = {
    name: 'Leaks',
    event_types: ['job.run.started'],
    client_url: world.system.receiver.url,
    ...fields,
  };
  const request = { method: 'POST', path: webhooksPath(world, '/subscriptions'), body };
  return String((await callApi(world.system, world.management, request)).data.id);
}

/** Starts a run, and returns the delivery of each webhook once its only attempt has ended. */
async function deliverRun(world: World, webhookIds: string[]): Promise<Record<string, unknown>[]> {
  const { system, management, jobId } = world;
  const path = `/v2/accounts/${system.account.id}/runs/`;
  const body = { job_id: jobId, engine_version: '1' };
  const { data } = await callApi(system, management, { method: 'POST', path, body });
  return await Promise.all(
    webhookIds.map((id) =>
      eventually(async () => {
        const list = await get(world, `/subscription/${id}/deliveries?run_id=${data.id}`);
        const [delivery] = list as unknown as { id: string; completed_at: string | null }[];
        if (!delivery?.completed_at) throw new Error('the attempt has not ended');
        return await get(world, `/subscription/${id}/delivery/${delivery.id}`);
      }),
    ),
  );
}

/** The duration after which a request to any blocked target ends. */
const BLOCKED_MS = 500;

/** A target for each rule; all must have the same responses. */
async function compareBlockedTargets(world: World): Promise<string[]> {
  const { system } = world;
  const targets = ['http://10.20.30.40:PORT/', 'http://8.8.8.8:1/', 'http://no-such-name.invalid:PORT/'].map(
    (url) => url.replace('PORT', String(system.receiver.port)),
  );
  const ids: string[] = [];
  for (const url of targets) {
    const id = await createWebhook(world, {});
    ids.push(id);
    await system.database.pool.query('UPDATE subscriptions SET client_url = $2 WHERE id = $1', [id, url]);
  }
  const problems: string[] = [];
  const deliveries = await deliverRun(world, ids);
  const views: string[] = [];
  for (const [index, id] of ids.entries()) {
    const delivery = deliveries[index] as { completed_at: string; attempts: { started_at: string }[] };
    const tookMs = (Number(delivery.completed_at) - Number(delivery.attempts[0]?.started_at)) / 1_000;
    if (tookMs < BLOCKED_MS - 10) problems.push(`the attempt at ${targets[index]} ended after ${tookMs} ms`);
    const startedMs = performance.now();
    const tested = await get(world, `/subscription/${id}/test?include=error_code,exchange`);
    const testedMs = performance.now() - startedMs;
    if (testedMs < BLOCKED_MS - 10) problems.push(`the test of ${targets[index]} ended after ${testedMs} ms`);
    views.push(
      comparable({
        delivery,
        tested,
        webhook: await get(world, `/subscription/${id}?include=error_code`),
        statistics: (await get(world, `/subscription/${id}/statistics?hours=2`)).totals,
        listed: await get(world, `/deliveries?subscription_id=${id}&error_code=no_address`),
        slow: await get(world, `/deliveries?subscription_id=${id}&duration_min_ms=0`),
      }),
    );
  }
  for (const [index, view] of views.entries())
    if (view !== views[0]) problems.push(`${targets[index]} differs: ${view} instead of ${views[0]}`);
  for (const code of ['address_forbidden', 'port_forbidden', 'dns_failed']) {
    const path = webhooksPath(world, `/deliveries?error_code=${code}`);
    const { status } = await callApi(system, world.management, { method: 'GET', path });
    if (status !== 400) problems.push(`the filter ${code} is a ${status}`);
    if (views.some((view) => view.includes(code))) problems.push(`${code} is in a response`);
  }
  return problems;
}

/** Returns the data as text, without what differs by webhook: ids, URLs, times, bodies. */
function comparable(data: unknown): string {
  const VOLATILE =
    /^(id|event_id|subscription_id|delivery_id|client_url|url|payload|request_body|request_headers|.*_at|since|until)$/;
  return JSON.stringify(data, (name, value) => (VOLATILE.test(name) ? undefined : value));
}

/** The endpoint sends back the headers of the request in several encodings. */
async function findEchoes(world: World): Promise<string[]> {
  const { system } = world;
  const key = 'Zq8 "gateway"/key+Zq8';
  const token = 'tok3n-of-the-gateway';
  system.receiver.respondWith(({ headers }) => {
    const raw = JSON.stringify(headers);
    const encoded = Object.values(headers).map((value) => encodeURIComponent(String(value)));
    const body = `${raw}\n${encoded.join('\n')}\n${Buffer.from(raw).toString('base64')}`;
    return { status: 500, headers: { 'x-echo': String(headers['x-gate']) }, body: `${body}\n${token}` };
  });
  const headers = { 'X-Gate': key, 'X-Token': `Bearer ${token}` };
  const id = await createWebhook(world, { headers, signature_header: 'X-Signature' });
  const [delivery] = await deliverRun(world, [id]);
  const tested = await get(world, `/subscription/${id}/test?include=error_code,exchange`);
  const { rows } = await system.database.pool.query(
    'SELECT a.response_headers, a.response_body FROM attempts a JOIN deliveries d ON d.id = a.delivery_id WHERE d.subscription_id = $1',
    [id],
  );
  const signatures = system.receiver.requests.map((request) => String(request.headers['x-signature']));
  const values = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key), token];
  return Object.entries({ delivery, tested, rows }).flatMap(([where, data]) => {
    const texts = textsOf(data);
    const found = [
      ...signatures.filter((signature) => texts.includes(signature)),
      ...values.filter((value) => texts.includes(value) || decoded(texts).includes(value)),
    ];
    return found.map((secret) => `${where} has ${secret}`);
  });
}

function textsOf(data: unknown): string {
  const texts: string[] = [];
  JSON.stringify(data, (_name, value) => {
    if (typeof value === 'string') texts.push(value);
    return value;
  });
  return texts.join('\n');
}

/** Decodes what is base64 in a text. */
function decoded(text: string): string {
  const parts = text.split(/[^A-Za-z0-9+/=]/);
  return parts.map((part) => Buffer.from(part, 'base64').toString('latin1')).join('\n');
}
