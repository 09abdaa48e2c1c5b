import { expect, test } from '@jest/globals';
import type { Queryable } from '@runhook/database';
import { FeedStateReader } from '../../src/feed/state.ts';

/** Returns a reader of a server with these horizons, and the statements that it executes. */
function openReader() {
  const server = { horizon: 10, end: 10, isCurrent: true, isSameServer: true, nowMs: 0 };
  const statements: string[] = [];
  const query = async ({ text, values }: { text: string; values: unknown[] }) => {
    if (text.includes('pg_dist')) return { rows: [{ is_true: false }] };
    if (!text.includes('FROM feed_generations')) {
      statements.push(`${/^\s*(UPDATE|SELECT \w+)/.exec(text)?.[1]} ${values.join(' ')}`.trim());
      server.isCurrent = true;
      return { rows: [] };
    }
    const row = {
      id: 'a',
      first_position: '0',
      marked_position: '0',
      is_same_server: server.isSameServer,
      is_current: server.isCurrent,
      horizon: String(server.horizon),
      end_position: String(server.end),
      now_seconds: '1',
      oldest_seconds: '0',
    };
    return { rows: [row] };
  };
  const database = { query } as unknown as Queryable;
  return { server, statements, reader: new FeedStateReader({ database, nowMs: () => server.nowMs }) };
}

test('the horizon is held back from the first read with newer transactions until it moves', async () => {
  const { server, reader } = openReader();
  const measure = async (nowMs: number, horizon: number, end: number) => {
    Object.assign(server, { nowMs, horizon, end });
    await reader.readHorizon();
    return reader.delaySeconds;
  };
  expect(await measure(0, 10, 10)).toBe(0);
  expect(await measure(1_000, 10, 12)).toBe(0);
  expect(await measure(31_000, 10, 15)).toBe(30);
  expect(await measure(32_000, 13, 15)).toBe(0);
  expect(await measure(33_000, 15, 15)).toBe(0);
});

test('the horizon is recorded every ten seconds while the feed is read', async () => {
  const { server, statements, reader } = openReader();
  for (const nowMs of [0, 9_999, 10_000]) {
    server.nowMs = nowMs;
    await reader.read(1);
  }
  await reader.readHorizon();
  expect(statements).toEqual(['UPDATE a 10', 'UPDATE a 10']);
});

test('a failover begins a generation, and a restored dump is unavailable until migrate has run', async () => {
  const { server, statements, reader } = openReader();
  server.isCurrent = false;
  await reader.read(1);
  expect(statements[0]).toBe('SELECT renew_feed_generation');
  Object.assign(server, { isCurrent: false, isSameServer: false });
  await expect(reader.read(1)).rejects.toMatchObject({ statusCode: 503 });
});
