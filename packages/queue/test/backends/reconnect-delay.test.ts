import { expect, test } from '@jest/globals';
import { reconnectDelayMs } from '../../src/backends/redis/connection.ts';

test('clients that lose a Redis at the same time return at different times, within two seconds', () => {
  const delays = Array.from({ length: 50 }, () => reconnectDelayMs(10));
  expect(new Set(delays).size).toBeGreaterThan(40);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...delays)).toBeLessThanOrEqual(2_000);
});
