import { createServer } from 'node:http';
import { afterEach, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions } from '../src/egress.ts';
import {
  iterateUntil,
  type Listening,
  listen,
  NO_DEADLINE_MS,
  nextIteration,
  rawServer,
} from './listening.ts';

let server: Listening;
let egress: Egress;

function open(options: Partial<EgressOptions> = {}): void {
  egress = createEgress({
    allowCidrs: ['127.0.0.0/8'],
    timeoutMs: NO_DEADLINE_MS,
    blockedStepMs: 0,
    ...options,
  });
}
const post = (host = '127.0.0.1') =>
  egress.post({ accountId: 1, url: `http://${host}:${server.port}/`, headers: {}, body: '{}' });

/**
 * Waits by the clock that got uses, because a timer may fire early by that clock. The preceding event loop iteration
 * lets got record the start of the phase.
 */
async function elapse(ms: number): Promise<void> {
  await nextIteration();
  const startMs = Date.now();
  await iterateUntil(() => Date.now() - startMs >= ms);
}

const atLeast = (ms: number) => ({
  asymmetricMatch: (actual: unknown) => Number.isInteger(actual) && (actual as number) >= ms,
});

afterEach(async () => {
  egress.close();
  await server.close();
});

test('each phase is timed, and a request on a reused connection has only its own phases', async () => {
  server = await listen(
    createServer({ keepAliveTimeout: 0 }, async (_request, response) => {
      await elapse(30);
      response.flushHeaders();
      await elapse(20);
      response.end('ok');
    }),
  );
  open({
    lookup: async (_hostname, _options, callback) => {
      await elapse(40);
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    },
  });
  expect((await post('hooks.example')).timings).toEqual({
    dnsMs: atLeast(40),
    connectMs: atLeast(0),
    tlsMs: null,
    firstByteMs: atLeast(30),
    totalMs: atLeast(90),
  });
  expect((await post('hooks.example')).timings).toEqual({
    dnsMs: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: atLeast(30),
    totalMs: atLeast(50),
  });
});

test('a request that fails or times out has the phases that it reached', async () => {
  server = await listen(rawServer(() => {}));
  open({ timeoutMs: 60 });
  expect((await post()).timings).toEqual({
    dnsMs: 0,
    connectMs: atLeast(0),
    tlsMs: null,
    firstByteMs: null,
    totalMs: atLeast(0),
  });

  await server.close();
  expect(await post()).toMatchObject({
    error: { code: 'connection_refused' },
    timings: { connectMs: null, firstByteMs: null, totalMs: atLeast(0) },
  });
});

test('a name that is not found has the duration of the failed lookup', async () => {
  server = await listen(rawServer(() => {}));
  open({
    lookup: async (_hostname, _options, callback) => {
      await elapse(40);
      callback(null, []);
    },
  });
  expect(await post('no.example')).toMatchObject({
    error: { code: 'dns_failed' },
    timings: { dnsMs: atLeast(40), connectMs: null, tlsMs: null, firstByteMs: null, totalMs: atLeast(40) },
  });
});

test('a response that precedes the end of the request has no time to its first byte', async () => {
  server = await listen(
    rawServer((socket, nth) => {
      if (nth > 1) return;
      socket.pause();
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
    }),
  );
  open();
  const url = `http://127.0.0.1:${server.port}/`;
  const { timings } = await egress.post({ accountId: 1, url, headers: {}, body: Buffer.alloc(30_000_000) });
  expect(timings).toMatchObject({ firstByteMs: null, totalMs: atLeast(0) });
});

test('a request that was not sent has no timings', async () => {
  server = await listen(rawServer(() => {}));
  open({ allowCidrs: [] });
  expect((await post()).timings).toBeNull();
  expect((await egress.post({ accountId: 1, url: 'nowhere', headers: {}, body: '' })).timings).toBeNull();
});
