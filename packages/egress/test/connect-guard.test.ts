import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions } from '../src/egress.ts';
import { publicErrorCode } from '../src/index.ts';
import { type Listening, listen, NO_DEADLINE_MS } from './listening.ts';

/** The message is the same for every rule, and for names that were not found. */
const BLOCKED = 'The endpoint has no address that may be called.';

let server: Listening;
let egress: Egress;
let lookedUp: string[];

/** Returns the nth list for the nth lookup, and the last list for all later ones. */
function lookupReturning(...ips: string[][]): NonNullable<EgressOptions['lookup']> {
  return (hostname, _options, callback) => {
    const addresses = ips[Math.min(lookedUp.length, ips.length - 1)] ?? [];
    lookedUp.push(hostname);
    const list: LookupAddress[] = addresses.map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    setImmediate(() => callback(null, list));
  };
}

function open(options: Partial<EgressOptions>): void {
  egress = createEgress({ allowCidrs: [], timeoutMs: NO_DEADLINE_MS, blockedStepMs: 0, ...options });
}

const post = (host: string, scheme = 'http') =>
  egress.post({
    accountId: 1,
    url: `${scheme}://${host}:${server.port}/`,
    headers: {},
    body: Buffer.from('{}'),
  });

const forbidden = (address: string) => ({
  response: null,
  error: {
    code: 'address_forbidden',
    message: BLOCKED,
    detail: `The address ${address} is not allowed.`,
  },
});

beforeEach(async () => {
  lookedUp = [];
  server = await listen(createServer((_request, response) => void response.end('reached')));
});
afterEach(async () => {
  egress.close();
  await server.close();
});

describe('no connection is made', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1.', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['0177.0.0.1', '127.0.0.1'],
    ['0', '0.0.0.0'],
    ['[::1]', '::1'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['[::127.0.0.1]', '::7f00:1'],
  ])('to the literal address %s', async (host, address) => {
    open({});
    for (const scheme of ['http', 'https'])
      expect(await post(host, scheme)).toMatchObject(forbidden(address));
    expect(server.connections).toBe(0);
  });

  test.each(['localhost', 'localhost.', 'LOCALHOST', 'a.localhost'])('to the name %s', async (host) => {
    open({});
    expect((await post(host)).error?.code).toBe('address_forbidden');
    expect(server.connections).toBe(0);
  });

  test('to a public name whose addresses are all forbidden', async () => {
    open({ lookup: lookupReturning(['127.0.0.1', '10.0.0.1', '::1']) });
    expect(await post('rebound.example')).toMatchObject(forbidden('127.0.0.1'));
    expect(await post('rebound.example', 'https')).toMatchObject(forbidden('127.0.0.1'));
    expect(server.connections).toBe(0);
  });

  test.each(['::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '127.0.0.1%lo', 'not an address'])(
    'to a name that resolves to %s',
    async (address) => {
      open({ lookup: lookupReturning([address]), allowCidrs: ['127.0.0.0/8'] });
      expect(await post('odd.example')).toMatchObject(forbidden(address));
      expect(server.connections).toBe(0);
    },
  );
});

describe('DNS rebinding', () => {
  test('cannot bypass the guard, because the checked address is the one used and no second lookup is made', async () => {
    open({ lookup: lookupReturning(['127.0.0.1'], ['10.0.0.1']), allowCidrs: ['127.0.0.0/8'] });
    const result = await post('rebound.example');
    expect(result.response?.body.toString()).toBe('reached');
    expect(lookedUp).toEqual(['rebound.example']);
  });

  test('to a forbidden address is rejected when a later connection resolves the name again', async () => {
    open({
      lookup: lookupReturning(['198.51.100.7'], ['127.0.0.1']),
      allowCidrs: ['198.51.100.0/24'],
      timeoutMs: 300,
    });
    expect((await post('rebound.example')).error?.code).not.toBe('address_forbidden');
    expect(await post('rebound.example')).toMatchObject(forbidden('127.0.0.1'));
    expect(server.connections).toBe(0);
  });
});

describe('a name with several addresses', () => {
  test('is reached at its allowed addresses only', async () => {
    open({ lookup: lookupReturning(['10.0.0.1', '::1', '127.0.0.1']), allowCidrs: ['127.0.0.1/32'] });
    expect((await post('mixed.example')).response?.body.toString()).toBe('reached');
  });

  test('is reached even if nothing listens on the first address of another family', async () => {
    open({
      lookup: lookupReturning(['::1', '127.0.0.2', '127.0.0.1']),
      allowCidrs: ['127.0.0.0/8', '::1/128'],
    });
    expect((await post('dual.example')).response?.body.toString()).toBe('reached');
  });

  test('is reported as refusing connections if nothing listens on any address', async () => {
    open({ lookup: lookupReturning(['127.0.0.2', '127.0.0.3']), allowCidrs: ['127.0.0.0/8'] });
    expect((await post('down.example')).error).toEqual({
      code: 'connection_refused',
      message: 'Connection refused.',
    });
  });
});

test('localhost is reached by name if loopback is allowed', async () => {
  open({ allowCidrs: ['127.0.0.0/8', '::1/128'] });
  expect((await post('localhost')).response?.body.toString()).toBe('reached');
});

test('a name that cannot be resolved is reported as dns_failed', async () => {
  const failure = Object.assign(new Error('queryA ENOTFOUND no.example'), { code: 'ENOTFOUND' });
  open({ lookup: (_hostname, _options, callback) => callback(failure, []) });
  const notResolved = (why: string) => ({
    code: 'dns_failed',
    message: BLOCKED,
    detail: `The name was not resolved (${why}).`,
  });
  expect((await post('no.example')).error).toEqual(notResolved('ENOTFOUND'));
  open({ lookup: lookupReturning([]) });
  expect((await post('empty.example')).error).toEqual(notResolved('no address'));
});

test.each([
  '',
  'example.com',
  'ftp://example.com/',
  'http://',
  'http://user:secret@example.com/',
  'http://exa mple/',
])('the URL %j gives an error result and no exception', async (url) => {
  open({});
  const result = await egress.post({ accountId: 1, url, headers: {}, body: Buffer.from('{}') });
  expect(result).toMatchObject({ response: null, error: { code: 'invalid_url' } });
  expect(result.error?.message).toMatch(/^The URL must [a-z ]+\.$/i);
});

test.each(['http://unix/var/run/x.sock:/a', 'http://example.com/%E0%A4%A', 'http://example.com:0/'])(
  'the unusual URL %s gives an error result and no exception',
  async (url) => {
    open({ lookup: lookupReturning(['127.0.0.1']), allowCidrs: ['127.0.0.0/8'] });
    const result = await egress.post({ accountId: 1, url, headers: {}, body: Buffer.from('{}') });
    expect(result.error).not.toBeNull();
  },
);

test('an invalid header gives an error result and no exception', async () => {
  open({ allowCidrs: ['127.0.0.0/8'] });
  const result = await egress.post({
    accountId: 1,
    url: `http://127.0.0.1:${server.port}/`,
    headers: { 'x-a': 'line\r\nbreak' },
    body: Buffer.from('{}'),
  });
  expect(result.error).toEqual({ code: 'request_failed', message: 'The request failed (ERR_INVALID_CHAR).' });
});

test('every blocked request ends at the same time, whichever rule blocks it', async () => {
  const STEP_MS = 80;
  open({
    lookup: lookupReturning(['10.0.0.1'], []),
    ports: [{ first: server.port, last: server.port }],
    blockedStepMs: STEP_MS,
  });
  const urls = [`http://10.0.0.1:${server.port}/`, 'http://forbidden.port/', `http://a.b:${server.port}/`];
  for (const url of [...urls, `http://no.address:${server.port}/`]) {
    const startedMs = performance.now();
    const { error, durationMs } = await egress.post({ accountId: 1, url, headers: {}, body: '{}' });
    expect(publicErrorCode(error?.code ?? '')).toBe('no_address');
    // Timers count in whole milliseconds of another clock, so one may end up to two of them early.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(STEP_MS - 2);
    // The operator's log has the time that the lookup took.
    expect(durationMs).toEqual(expect.any(Number));
  }
});
