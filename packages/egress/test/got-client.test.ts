import { createServer } from 'node:http';
import { expect, test } from '@jest/globals';
import type { Got } from 'got';
import { createAddressGuard } from '../src/address-guard.ts';
import { createConnectionPool } from '../src/connection-pool.ts';
import { createEgress } from '../src/egress.ts';
import { EndpointCache } from '../src/endpoint-url.ts';
import { createGotClient } from '../src/got-client.ts';
import { listen, NO_DEADLINE_MS } from './listening.ts';

function ourClient(): Got {
  const guard = createAddressGuard({ allowCidrs: [] });
  const { agents } = createConnectionPool({
    guard,
    lookupFor: () => () => {},
    keepAlive: true,
    maxSocketsPerEndpoint: 1,
    idleSocketsMax: 1,
    idleSocketTimeoutMs: 1_000,
    addressAttemptTimeoutMs: 1_000,
    certificateAuthorities: [],
  });
  return createGotClient({ agents, timeoutMs: 1_000 });
}

test('only the request timeout of got is set', () => {
  const { timeout } = ourClient().defaults.options;
  expect(Object.entries(timeout).filter(([, ms]) => ms !== undefined)).toEqual([['request', 1_000]]);
});

test('a URL is parsed and checked once, and the least recently used one is evicted', () => {
  const judged: string[] = [];
  const endpoints = new EndpointCache(
    {
      allows: (address) => judged.push(address) > 0,
      allowsPort: () => true,
      parseUrl: (text) => new URL(text),
    },
    2 * 2 * 1_500,
  );
  const urlOf = (n: number) => `http://192.0.2.${n}/`;
  for (const n of [1, 2, 1, 3, 1]) expect(endpoints.get(urlOf(n)).url?.href).toBe(urlOf(n));
  expect(judged).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  endpoints.get(urlOf(2));
  expect(judged).toHaveLength(4);
});

test('requests to more URLs than the cache holds all reach their own URL', async () => {
  const paths: (string | undefined)[] = [];
  const server = await listen(
    createServer((request, response) => {
      paths.push(request.url);
      response.end();
    }),
  );
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS });
  const wanted = Array.from({ length: 50 }, (_, n) => `/hook/${n % 25}?n=${n % 25}`);
  for (const path of wanted) {
    await egress.post({
      accountId: 1,
      url: `http://127.0.0.1:${server.port}${path}`,
      headers: {},
      body: '{}',
    });
  }
  expect(paths).toEqual(wanted);
  egress.close();
  await server.close();
});
