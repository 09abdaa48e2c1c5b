import { expect, test } from '@jest/globals';
import { createLogger, Lifecycle } from '../src/index.ts';

function setUp(closeTimeoutMs?: number) {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'test', level: 'info', destination });
  const lifecycle = new Lifecycle(closeTimeoutMs === undefined ? { logger } : { logger, closeTimeoutMs });
  return { lifecycle, failures: () => lines.filter(({ level }) => level === 'error') };
}

test('closers run in the reverse order of their registration, one at a time, after `stopping` is true', async () => {
  const { lifecycle } = setUp();
  const seen: string[] = [];
  for (const name of ['database', 'queue', 'server']) {
    lifecycle.onClose(name, async () => {
      seen.push(`${name} ${lifecycle.stopping}`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${name} closed`);
    });
  }
  expect(lifecycle.stopping).toBe(false);
  await lifecycle.close('test');
  expect(seen).toEqual([
    'server true',
    'server closed',
    'queue true',
    'queue closed',
    'database true',
    'database closed',
  ]);
});

test('a closer that throws, rejects or hangs is logged and does not prevent the others', async () => {
  const { lifecycle, failures } = setUp(10_000);
  const closed: string[] = [];
  lifecycle.onClose('first', () => void closed.push('first'));
  lifecycle.onClose('throws', () => {
    throw new Error('no');
  });
  lifecycle.onClose('rejects', () => Promise.reject(new Error('no')));
  lifecycle.onClose('hangs', () => new Promise(() => {}), { timeoutMs: 20 });
  await lifecycle.close('test');
  expect(closed).toEqual(['first']);
  expect(failures().map(({ closer }) => closer)).toEqual(['hangs', 'rejects', 'throws']);
});

test('a second close() runs no closer again, and both callers wait for the end', async () => {
  const { lifecycle } = setUp();
  let closed = 0;
  lifecycle.onClose('resource', async () => {
    void lifecycle.close('from within');
    await new Promise((resolve) => setImmediate(resolve));
    closed += 1;
  });
  await Promise.all([lifecycle.close('one'), lifecycle.close('two')]);
  await lifecycle.close('three');
  expect(closed).toBe(1);
});

test('a resource that is opened during or after the stop is closed as well', async () => {
  const { lifecycle } = setUp();
  const closed: string[] = [];
  lifecycle.onClose('early', () => {
    lifecycle.onClose('late', () => void closed.push('late'));
    closed.push('early');
  });
  await lifecycle.close('test');
  lifecycle.onClose('too late', () => void closed.push('too late'));
  expect(closed).toEqual(['early', 'late', 'too late']);
});
