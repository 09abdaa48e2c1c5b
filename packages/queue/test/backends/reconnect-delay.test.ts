import { expect, test } from '@jest/globals';
import { reconnectDelayMs } from '../../src/backends/redis/connection.ts';
import { readinessRetryMs } from '../../src/patches/bullmq/postgres-backend.ts';

test.each([
  ['a Redis', () => reconnectDelayMs(10), 2_000],
  ['a PostgreSQL', readinessRetryMs, 500],
])(
  'clients that lose %s simultaneously reconnect at different times, within a maximum',
  (_server, delayMs, maxMs) => {
    const delays = Array.from({ length: 50 }, delayMs);
    expect(new Set(delays).size).toBeGreaterThan(40);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(maxMs / 2);
    expect(Math.max(...delays)).toBeLessThanOrEqual(maxMs);
  },
);
