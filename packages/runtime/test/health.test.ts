import { expect, test } from '@jest/globals';
import { createHealth } from '../src/index.ts';

test('a report contains every check of its kind and fails if one of them fails', async () => {
  const health = createHealth();
  health.register('loop', 'live', () => {});
  health.register('database', 'ready', async () => {});
  health.register('queue', 'ready', () => Promise.reject(new Error('password=hunter2 refused')));
  health.register('cache', 'ready', () => {
    throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:6379'), { code: 'ECONNREFUSED' });
  });
  expect(await health.report('live')).toEqual({ ok: true, checks: { loop: { ok: true } } });
  expect(await health.report('ready')).toEqual({
    ok: false,
    checks: {
      database: { ok: true },
      queue: { ok: false, error: 'failed' },
      cache: { ok: false, error: 'ECONNREFUSED' },
    },
  });
});

test('a report contains the publicMessage of the error of a failed check', async () => {
  const health = createHealth();
  const message = 'Set it to noeviction.';
  health.register('queue', 'ready', () => {
    throw Object.assign(new Error('10.0.0.7 evicts'), { code: 'QUEUE_EVICTS', publicMessage: message });
  });
  expect((await health.report('ready')).checks.queue).toEqual({ ok: false, error: 'QUEUE_EVICTS', message });
});

test('a check that is not required does not fail the report', async () => {
  const health = createHealth({ timeoutMs: 30 });
  health.register('database', 'ready', () => {});
  health.register('queue', 'ready', () => new Promise(() => {}), { required: false });
  health.register('cache', 'ready', () => {}, { required: false });
  const checks = {
    database: { ok: true },
    queue: { ok: false, error: 'timed out', required: false },
    cache: { ok: true, required: false },
  };
  expect(await health.report('ready')).toEqual({ ok: true, status: 'degraded', checks });
  health.register('disk', 'ready', () => Promise.reject(new Error('full')));
  expect((await health.report('ready')).ok).toBe(false);
});

test('a check that hangs fails at its timeout, delays no other check and is not started a second time', async () => {
  const health = createHealth({ timeoutMs: 30 });
  let started = 0;
  health.register('hangs', 'ready', () => {
    started += 1;
    return new Promise(() => {});
  });
  health.register('passes', 'ready', () => {});
  for (let n = 0; n < 3; n += 1) {
    expect(await health.report('ready')).toEqual({
      ok: false,
      checks: { hangs: { ok: false, error: 'timed out' }, passes: { ok: true } },
    });
  }
  expect(started).toBe(1);
});

test('ready fails once the process is stopping, and live does not', async () => {
  const lifecycle = { stopping: false };
  const health = createHealth({ lifecycle });
  health.register('database', 'ready', () => {});
  expect((await health.report('ready')).ok).toBe(true);
  lifecycle.stopping = true;
  expect(await health.report('ready')).toEqual({
    ok: false,
    checks: { database: { ok: true }, lifecycle: { ok: false, error: 'stopping' } },
  });
  expect((await health.report('live')).ok).toBe(true);
});

test('a check is logged when its result changes, not at each probe', async () => {
  const changes: string[] = [];
  const logger = { info: () => void changes.push('passes'), warn: () => void changes.push('fails') };
  const health = createHealth({ logger });
  let broken = true;
  health.register('database', 'ready', () => {
    if (broken) throw new Error('down');
  });
  await health.report('ready');
  await health.report('ready');
  broken = false;
  await health.report('ready');
  await health.report('ready');
  expect(changes).toEqual(['fails', 'passes']);
});
