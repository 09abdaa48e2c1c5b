import { createSocket, type Socket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterEach, expect, test } from '@jest/globals';
import { createHostLookup } from '../src/host-lookup.ts';

type Zone = Record<string, { a?: string; aaaa?: string } | 'silent' | 'broken'>;

let server: Socket;
let questions: string[];

/** A DNS server that knows the zone's names; every other name does not exist. */
async function serve(zone: Zone): Promise<string[]> {
  questions = [];
  server = createSocket('udp4');
  server.on('message', (query, peer) => {
    const { name, type } = readQuestion(query);
    questions.push(`${name} ${type}`);
    const entry = zone[name];
    if (entry === 'silent') return;
    if (entry === 'broken') return server.send(reply(query, 2, null), peer.port, peer.address);
    if (entry === undefined) return server.send(reply(query, 3, null), peer.port, peer.address);
    const data = type === 1 ? ipv4Bytes(entry.a) : ipv6Bytes(entry.aaaa);
    return server.send(reply(query, 0, data), peer.port, peer.address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  return [`127.0.0.1:${server.address().port}`];
}

function readQuestion(query: Buffer): { name: string; type: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1) };
}

/** The query back as an answer: header, question, and at most one record that points to the question's name. */
function reply(query: Buffer, code: number, data: Buffer | null): Buffer {
  let questionEnd = 12;
  while ((query[questionEnd] ?? 0) > 0) questionEnd += 1 + (query[questionEnd] ?? 0);
  questionEnd += 5;
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(data === null ? 0 : 1, 6);
  header.writeUInt32BE(0, 8);
  const question = query.subarray(12, questionEnd);
  if (data === null) return Buffer.concat([header, question]);
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc00c, 0);
  query.copy(record, 2, questionEnd - 4, questionEnd);
  record.writeUInt32BE(60, 6);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([header, question, record, data]);
}

function ipv4Bytes(address: string | undefined): Buffer | null {
  return address === undefined ? null : Buffer.from(address.split('.').map(Number));
}

function ipv6Bytes(address: string | undefined): Buffer | null {
  return address === undefined
    ? null
    : Buffer.from(
        address
          .split(':')
          .map((part) => part.padStart(4, '0'))
          .join(''),
        'hex',
      );
}

function resolve(lookup: ReturnType<typeof createHostLookup>, name: string): Promise<LookupAddress[]> {
  return new Promise((done, fail) => {
    lookup(name, { all: true }, (error, addresses) =>
      error ? fail(error) : done(addresses as LookupAddress[]),
    );
  });
}

afterEach(() => void server.close());

test('every address of a name is found, IPv4 first', async () => {
  const lookup = createHostLookup(
    await serve({
      'both.test': { a: '203.0.113.1', aaaa: '2001:0db8:0:0:0:0:0:1' },
      'old.test': { a: '203.0.113.2' },
      'new.test': { aaaa: '2001:0db8:0:0:0:0:0:2' },
    }),
  );
  expect(await resolve(lookup, 'both.test')).toEqual([
    { address: '203.0.113.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ]);
  expect(await resolve(lookup, 'old.test')).toEqual([{ address: '203.0.113.2', family: 4 }]);
  expect(await resolve(lookup, 'new.test')).toEqual([{ address: '2001:db8::2', family: 6 }]);
});

test('names whose servers stay silent hold up no other name', async () => {
  const zone: Zone = { 'healthy.test': { a: '203.0.113.1' } };
  for (let n = 0; n < 100; n += 1) zone[`dead-${n}.test`] = 'silent';
  const lookup = createHostLookup(await serve(zone));
  let givenUp = 0;
  const dead = Array.from({ length: 100 }, (_, n) =>
    resolve(lookup, `dead-${n}.test`).catch((error) => {
      givenUp += 1;
      return error.code;
    }),
  );
  expect(await resolve(lookup, 'healthy.test')).toEqual([{ address: '203.0.113.1', family: 4 }]);
  expect(givenUp).toBe(0);
  expect(new Set(await Promise.all(dead))).toEqual(new Set(['ETIMEOUT']));
});

test('concurrent lookups of one name share one query, later ones ask again', async () => {
  const lookup = createHostLookup(await serve({ 'one.test': { a: '203.0.113.1' } }));
  await Promise.all(Array.from({ length: 20 }, () => resolve(lookup, 'one.test')));
  expect(questions.sort()).toEqual(['one.test 1', 'one.test 28']);
  await resolve(lookup, 'one.test');
  expect(questions).toHaveLength(4);
});

test('a name without a dot is left to the system', async () => {
  const lookup = createHostLookup(await serve({}));
  const [name = ''] = hostname().split('.');
  await resolve(lookup, name).catch(() => 'not every machine knows its own name');
  expect(questions).toEqual([]);
});

test.each(['localhost', 'localhost.', 'a.localhost'])('%s is loopback, whatever DNS says', async (name) => {
  const lookup = createHostLookup(
    await serve({ localhost: { a: '203.0.113.1' }, 'a.localhost': { a: '203.0.113.1' } }),
  );
  expect((await resolve(lookup, name)).map(({ address }) => address)).toEqual(['127.0.0.1', '::1']);
  expect(questions).toEqual([]);
});

test('a name whose servers are broken fails without holding a thread', async () => {
  const lookup = createHostLookup(await serve({ 'broken.test': 'broken' }));
  await expect(resolve(lookup, 'broken.test')).rejects.toMatchObject({ code: 'ESERVFAIL' });
});
