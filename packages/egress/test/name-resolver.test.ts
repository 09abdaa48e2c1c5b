import { lookup as systemLookup } from 'node:dns/promises';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createNameResolver, type NameResolverOptions, type ResolveName } from '../src/name-resolver.ts';
import { type DnsServer, type Entry, startDnsServer } from './dns-server.ts';
import { iterateUntil, NO_DEADLINE_MS, nextIteration } from './listening.ts';

let folder: string;
let server: DnsServer;
let nowMs: number;

const hostsPath = () => join(folder, 'hosts');
const resolvConfPath = () => join(folder, 'resolv.conf');

/** Creates a resolver that queries a server of this zone, on a machine with these files. */
async function resolverOf(
  zone: Record<string, Entry> | ((name: string) => Entry | undefined),
  options: Partial<NameResolverOptions> = {},
): Promise<ResolveName> {
  server = await startDnsServer(typeof zone === 'function' ? zone : (name) => zone[name]);
  return createNameResolver({
    timeoutMs: NO_DEADLINE_MS,
    dnsServers: [server.address],
    hostsPath: hostsPath(),
    resolvConfPath: resolvConfPath(),
    nowMs: () => nowMs,
    ...options,
  });
}

const addressesOf = async (resolve: ResolveName, name: string) =>
  (await resolve(name, 1)).map(({ address }) => address);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'runhook-names-'));
  nowMs = 0;
});
afterEach(async () => {
  server.respondToAll();
  await server.close();
  rmSync(folder, { recursive: true });
});

test('every address of a name is found, IPv4 first', async () => {
  const resolve = await resolverOf({
    'both.test': { a: '203.0.113.1', aaaa: '2001:0db8:0:0:0:0:0:1' },
    'old.test': { a: '203.0.113.2' },
    'new.test': { aaaa: '2001:0db8:0:0:0:0:0:2' },
  });
  expect(await resolve('both.test', 1)).toEqual([
    { address: '203.0.113.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ]);
  expect(await resolve('old.test', 1)).toEqual([{ address: '203.0.113.2', family: 4 }]);
  expect(await resolve('new.test', 1)).toEqual([{ address: '2001:db8::2', family: 6 }]);
});

test('a name whose servers never respond for one family is found by the other one', async () => {
  const resolve = await resolverOf({ 'half.test': { a: '203.0.113.1', aaaa: 'silent' } });
  expect(await resolve('half.test', 1)).toEqual([{ address: '203.0.113.1', family: 4 }]);
});

test.each([
  ['broken.test', 'ESERVFAIL'],
  ['absent.test', 'ENOTFOUND'],
  ['empty.test', 'ENODATA'],
  ['silent.test', 'ETIMEOUT'],
  ['a..test', 'EBADNAME'],
])('%s is not found, with the code %s', async (name, code) => {
  const zone = { 'broken.test': 'broken', 'empty.test': {}, 'silent.test': 'silent' } as const;
  const resolve = await resolverOf(zone, { timeoutMs: 300 });
  await expect(resolve(name, 1)).rejects.toMatchObject({ code });
});

describe('names whose servers do not respond', () => {
  const silentWithExceptions = (name: string): Entry | undefined =>
    name.startsWith('dead') ? 'silent' : { a: '203.0.113.1' };

  /**
   * Waits for this total of queries at the server: a burst would overflow its receive buffer and wait for a second try.
   */
  const countReceived = (count: number) => iterateUntil(() => server.questions.length >= count);

  test.each([
    ['of many domains', (n: number) => `dead-${n}.test`, 100],
    ['of one domain', (n: number) => `dead-${n}.attacker.test`, 16],
  ])(
    "%s delay neither other names nor work that needs a thread of libuv's pool",
    async (_which, nameOf, concurrentQuestions) => {
      const resolve = await resolverOf(silentWithExceptions);
      let failedCount = 0;
      const dead: Promise<string>[] = [];
      for (let n = 0; n < 100; n += 1) {
        const end = resolve(nameOf(n), 1).catch((error) => {
          failedCount += 1;
          return error.code;
        });
        dead.push(end as Promise<string>);
        await countReceived(2 * Math.min(n + 1, concurrentQuestions));
      }
      expect(await addressesOf(resolve, 'healthy.test')).toEqual(['203.0.113.1']);
      // Database and queue names are resolved on libuv's four threads.
      expect(await systemLookup('localhost')).toHaveProperty('address');
      expect(await readFile(new URL(import.meta.url))).toBeInstanceOf(Buffer);
      expect(failedCount).toBe(0);
      expect(server.questions.filter((question) => question.startsWith('dead'))).toHaveLength(
        2 * concurrentQuestions,
      );
      while (failedCount < 100) {
        server.respondToAll();
        await nextIteration();
      }
      expect(new Set(await Promise.all(dead))).toEqual(new Set(['ENOTFOUND']));
    },
  );

  test('do not delay names that were found before, however many they are', async () => {
    const resolve = await resolverOf(silentWithExceptions);
    await resolve('known.test', 1);
    const dead: Promise<unknown>[] = [];
    for (let n = 0; n < 300; n += 1) {
      dead.push(resolve(`dead.${n}.test`, 1).catch(() => {}));
      await countReceived(2 + 2 * Math.min(n + 1, 256));
    }
    nowMs = 60_000;
    expect(await addressesOf(resolve, 'known.test')).toEqual(['203.0.113.1']);
    expect(server.questions).toHaveLength(2 + 512 + 2);
    const all = Promise.all(dead);
    let hasSettled = false;
    void all.then(() => {
      hasSettled = true;
    });
    while (!hasSettled) {
      server.respondToAll();
      await nextIteration();
    }
  });
});

describe('a result is cached', () => {
  const countQuestions = async (resolve: ResolveName, name: string, atMs: number) => {
    nowMs = atMs;
    const before = server.questions.length;
    await resolve(name, 1).catch(() => {});
    return server.questions.length > before;
  };

  test.each([
    ['for its time to live', 60, 60_000],
    ['for no less than 5 s', 0, 5_000],
    ['for no more than 5 minutes', 86_400, 300_000],
  ])('%s', async (_how, ttlSeconds, cachedForMs) => {
    const resolve = await resolverOf({ 'one.test': { a: '203.0.113.1', ttlSeconds } });
    await Promise.all(Array.from({ length: 20 }, () => resolve('one.test', 1)));
    expect(server.questions.sort()).toEqual(['one.test 1', 'one.test 28']);
    expect(await countQuestions(resolve, 'one.test', cachedForMs - 1)).toBe(false);
    expect(await countQuestions(resolve, 'one.test', cachedForMs)).toBe(true);
  });

  test('for one account only, so that no account sees by the duration which names others call', async () => {
    const resolve = await resolverOf({ 'one.test': { a: '203.0.113.1' } });
    for (const accountId of [1, 2, 1, 2]) await resolve('one.test', accountId);
    expect(server.questions.sort()).toEqual(['one.test 1', 'one.test 1', 'one.test 28', 'one.test 28']);
  });

  test.each(['absent.test', 'broken.test'])('for 5 s if it is a failure: %s', async (name) => {
    const resolve = await resolverOf({ 'broken.test': 'broken' });
    await expect(resolve(name, 1)).rejects.toThrow();
    expect(await countQuestions(resolve, name, 4_999)).toBe(false);
    await expect(resolve(name, 1)).rejects.toThrow();
    expect(await countQuestions(resolve, name, 5_000)).toBe(true);
  });
});

describe('the resolver', () => {
  test.each(['localhost', 'localhost.', 'a.localhost'])(
    'returns loopback for %s, whatever DNS says',
    async (name) => {
      const resolve = await resolverOf(() => ({ a: '203.0.113.1' }));
      expect(await addressesOf(resolve, name)).toEqual(['127.0.0.1', '::1']);
      expect(server.questions).toEqual([]);
    },
  );

  test('prefers the names in the hosts file and notices its changes', async () => {
    writeFileSync(
      hostsPath(),
      '203.0.113.5 Receiver.test receiver # first\n2001:db8::5\treceiver.test\nnonsense x\n',
    );
    const resolve = await resolverOf(() => ({ a: '203.0.113.1' }));
    expect(await addressesOf(resolve, 'receiver.test')).toEqual(['203.0.113.5', '2001:db8::5']);
    expect(await addressesOf(resolve, 'receiver.test.')).toEqual(['203.0.113.5', '2001:db8::5']);
    expect(await addressesOf(resolve, 'receiver')).toEqual(['203.0.113.5']);
    expect(server.questions).toEqual([]);
    expect(await addressesOf(resolve, 'x')).toEqual(['203.0.113.1']);
    writeFileSync(hostsPath(), '203.0.113.6 receiver\n');
    expect(await addressesOf(resolve, 'receiver')).toEqual(['203.0.113.5']);
    nowMs = 5_000;
    while ((await addressesOf(resolve, 'receiver'))[0] !== '203.0.113.6') await nextIteration();
  });

  test('completes names with the search domains of resolv.conf, as in a cluster', async () => {
    writeFileSync(resolvConfPath(), 'search team.svc.cluster.local svc.cluster.local\noptions ndots:5\n');
    const resolve = await resolverOf({
      'receiver.team.svc.cluster.local': { a: '203.0.113.1' },
      'receiver.other.svc.cluster.local': { a: '203.0.113.2' },
      'hooks.example.com': { a: '203.0.113.3' },
      'hooks.example.com.team.svc.cluster.local': { a: '203.0.113.9' },
    });
    expect(await addressesOf(resolve, 'receiver')).toEqual(['203.0.113.1']);
    expect(await addressesOf(resolve, 'receiver.other')).toEqual(['203.0.113.2']);
    expect(await addressesOf(resolve, 'receiver.other.svc.cluster.local')).toEqual(['203.0.113.2']);
    expect(await addressesOf(resolve, 'hooks.example.com')).toEqual(['203.0.113.3']);
  });

  test('sends no query for a name below invalid', async () => {
    const resolve = await resolverOf(() => ({ a: '203.0.113.1' }));
    await expect(resolve('no-such-name.invalid', 1)).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(server.questions).toEqual([]);
  });
});
