import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Counter } from 'prom-client';
import {
  createHealth,
  createHttpProbes,
  createMetricsRegistry,
  type ProbeServer,
  startProbeServer,
} from '../src/index.ts';

let healthy: boolean;
let server: ProbeServer;
let base: string;
const registry = createMetricsRegistry({ service: 'dispatcher' });
const attempts = new Counter({ name: 'attempts_total', help: 'Attempts.', registers: [registry] });

beforeEach(async () => {
  healthy = true;
  const health = createHealth();
  health.register('loop', 'live', () => {});
  health.register('database', 'ready', () => {
    if (!healthy) throw new Error('down');
  });
  server = await startProbeServer({
    port: 0,
    host: '127.0.0.1',
    probes: createHttpProbes({ health, registry }),
  });
  base = `http://127.0.0.1:${server.port}`;
});
afterEach(() => server.close());

test('live and ready return 200 with their checks as JSON', async () => {
  const live = await fetch(`${base}/healthz`);
  expect(live.status).toBe(200);
  expect(live.headers.get('content-type')).toBe('application/json');
  expect(await live.json()).toEqual({ ok: true, checks: { loop: { ok: true } } });
  const ready = await fetch(`${base}/readyz?verbose=1`);
  expect(ready.status).toBe(200);
  expect(await ready.json()).toEqual({ ok: true, checks: { database: { ok: true } } });
});

test('probes forbid the guess of a content type, and reject a request with two hosts', async () => {
  expect((await fetch(`${base}/healthz`)).headers.get('x-content-type-options')).toBe('nosniff');
  const socket = connect(server.port, '127.0.0.1');
  socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1.1 400 /);
});

test('a failing check gives a 503 on its own probe only', async () => {
  healthy = false;
  const ready = await fetch(`${base}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toEqual({ ok: false, checks: { database: { ok: false, error: 'failed' } } });
  expect((await fetch(`${base}/healthz`)).status).toBe(200);
});

test('metrics are compressed if the client accepts that, unlike probes', async () => {
  const encodingOf = async (path: string, accepted: string) => {
    const { headers } = await fetch(base + path, { headers: { 'accept-encoding': accepted } });
    return [headers.get('content-encoding'), headers.get('vary')];
  };
  expect(await encodingOf('/metrics', 'gzip')).toEqual(['gzip', 'Accept-Encoding']);
  expect(await encodingOf('/metrics', 'identity')).toEqual([null, 'Accept-Encoding']);
  expect(await encodingOf('/healthz', 'gzip')).toEqual([null, null]);
  expect(await (await fetch(`${base}/metrics`)).text()).toContain('process_cpu_seconds_total');
});

test('metrics are in the text format, and each one is labelled with the service', async () => {
  attempts.inc(3);
  const response = await fetch(`${base}/metrics`);
  const metrics = await response.text();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe(registry.contentType);
  expect(metrics).toContain('attempts_total{service="dispatcher"} 3');
  expect(metrics).toMatch(/nodejs_eventloop_lag_p99_seconds\{service="dispatcher"\}/);
});

test('HEAD has no body, other methods give a 405, and other paths are left to the caller', async () => {
  const head = await fetch(`${base}/readyz`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  const post = await fetch(`${base}/metrics`, { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  for (const path of ['/', '/healthz/', '/toString', '/__proto__']) {
    expect((await fetch(`${base}${path}`)).status).toBe(404);
  }
});

test('metrics that cannot be collected give a 500 that reveals nothing', async () => {
  const failing = createMetricsRegistry({ service: 'failing' });
  new Counter({
    name: 'failing_total',
    help: 'Fails.',
    registers: [failing],
    collect() {
      throw new Error('password=hunter2');
    },
  });
  const probes = createHttpProbes({ health: createHealth(), registry: failing });
  const other = await startProbeServer({ port: 0, host: '127.0.0.1', probes });
  const response = await fetch(`http://127.0.0.1:${other.port}/metrics`);
  expect([response.status, await response.text()]).toEqual([500, 'Not available.\n']);
  await other.close();
});

test('startProbeServer() rejects if the port is in use', async () => {
  const probes = async () => true;
  await expect(startProbeServer({ port: server.port, host: '127.0.0.1', probes })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});

test('close() ends idle connections, may be called twice, and does not wait for a client that never finishes', async () => {
  const slow = connect(server.port, '127.0.0.1');
  slow.on('error', () => {});
  await new Promise((resolve) => slow.write('GET /healthz HTTP/1.1\r\n', resolve));
  await fetch(`${base}/healthz`);
  await Promise.all([server.close(), server.close()]);
  await expect(fetch(`${base}/healthz`)).rejects.toThrow();
});
