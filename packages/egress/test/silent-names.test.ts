import { createServer } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/egress.ts';
import { createLookup } from '../src/host-lookup.ts';
import { createNameResolver } from '../src/name-resolver.ts';
import { type DnsServer, type Entry, startDnsServer } from './dns-server.ts';
import { iterateUntil, type Listening, listen, NO_DEADLINE_MS, nextIteration } from './listening.ts';

let server: Listening;
let dns: DnsServer;
let egress: Egress;
let nowMs: number;

async function open(zone: (name: string, type: number) => Entry | undefined, allowCidrs: string[]) {
  nowMs = 0;
  server = await listen(createServer((_request, response) => void response.end('reached')));
  dns = await startDnsServer(zone);
  const resolve = createNameResolver({
    timeoutMs: NO_DEADLINE_MS,
    dnsServers: [dns.address],
    hostsPath: '/nonexistent',
    resolvConfPath: '/nonexistent',
    nowMs: () => nowMs,
  });
  egress = createEgress({
    allowCidrs,
    timeoutMs: NO_DEADLINE_MS,
    blockedStepMs: 0,
    lookup: createLookup(resolve, 1),
  });
}

const post = (host: string) =>
  egress.post({ accountId: 1, url: `http://${host}:${server.port}/`, headers: {}, body: '{}' });

let questionCounts: Map<string, number>;
beforeEach(() => {
  questionCounts = new Map();
});
afterEach(async () => {
  egress.close();
  dns.respondToAll();
  await Promise.all([server.close(), dns.close()]);
});

test('60 names whose servers stop responding do not delay requests to other names', async () => {
  await open(
    (name, type) => {
      if (!name.startsWith('trap')) return { a: '127.0.0.1' };
      const questions = (questionCounts.get(`${name} ${type}`) ?? 0) + 1;
      questionCounts.set(`${name} ${type}`, questions);
      return questions === 1 ? undefined : 'silent';
    },
    ['127.0.0.1/32'],
  );
  const silentNames = Array.from({ length: 60 }, (_, n) => `trap-${n}.test`);
  // One after the other: a burst would overflow the name server's receive buffer and wait for the second try.
  const silentResults = [];
  for (const name of silentNames) silentResults.push(await post(name));
  expect(new Set(silentResults.map(({ error }) => error?.code))).toEqual(new Set(['dns_failed']));
  // Failures are cached for a few seconds; later queries for the names get no response.
  nowMs = 5_000;
  let ended = 0;
  const silent = [];
  for (const [n, name] of silentNames.entries()) {
    silent.push(
      post(name).finally(() => {
        ended += 1;
      }),
    );
    await iterateUntil(() => dns.questions.length >= 2 * (60 + n + 1));
  }
  const others = [];
  for (let n = 0; n < 100; n += 1) others.push(await post(`healthy-${n}.test`));
  expect(others.map(({ error, response }) => error?.code ?? response?.statusCode)).toEqual(
    new Array(100).fill(200),
  );
  expect(ended).toBe(0);
  while (ended < 60) {
    dns.respondToAll();
    await nextIteration();
  }
  expect((await Promise.all(silent)).every(({ error }) => error?.code === 'dns_failed')).toBe(true);
});

test('a name that alternates between an allowed and a forbidden address never leads to the forbidden one', async () => {
  // The server listens on the forbidden address; nothing listens on the allowed one.
  await open(
    (name, type) => {
      if (type === 28) return {};
      const questions = (questionCounts.get(name) ?? 0) + 1;
      questionCounts.set(name, questions);
      return { a: questions % 2 === 1 ? '127.0.0.2' : '127.0.0.1', ttlSeconds: 0 };
    },
    ['127.0.0.2/32'],
  );
  const codes = new Map<string | undefined, number>();
  for (let n = 0; n < 400; n += 1) {
    // Every second lookup uses the cached result of the previous one.
    if (n % 2 === 0) nowMs += 5_000;
    const code = (await post('rebound.test')).error?.code;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  expect(questionCounts.get('rebound.test')).toBe(200);
  expect([...codes]).toEqual([
    ['connection_refused', 200],
    ['address_forbidden', 200],
  ]);
  expect(server.connections).toBe(0);
});
