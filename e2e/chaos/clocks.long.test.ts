import { expect, test } from '@jest/globals';
import { queueBackends } from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { COUNT, EARLY_MAX_MS, HOUR_MS, measureRetries, type RetryTimes } from './retries-with-clock-skew.ts';
import { isLong } from './world.ts';

const LATE_MAX_MS = 2_000;

/** By name: the milliseconds by which the clock of each of two dispatchers is ahead of the server's. */
const CLOCKS: Record<string, [number, number]> = {
  correct: [0, 0],
  'an hour ahead and an hour behind': [HOUR_MS, -HOUR_MS],
  ...(isLong && { 'an hour ahead': [HOUR_MS, HOUR_MS], 'an hour behind': [-HOUR_MS, -HOUR_MS] }),
};

test.each(queueBackends())(
  'dispatchers with wrong clocks make each retry and none early, with less than twice the usual calls to the queue on $name',
  async ({ name }) => {
    const retryTimes: Record<string, RetryTimes> = {};
    for (const [clocks, aheadMs] of Object.entries(CLOCKS)) {
      retryTimes[clocks] = await measureRetries(name, aheadMs);
      process.stderr.write(`queue on ${name}, clocks ${clocks}: ${JSON.stringify(retryTimes[clocks])}\n`);
    }
    const { correct, ...skewed } = retryTimes as Record<string, RetryTimes> & { correct: RetryTimes };
    const latestMs = Math.max(...Object.values(skewed).map((each) => each.latestMs));
    const calls = Math.max(...Object.values(skewed).map((each) => each.calls));
    reportFigure(
      'chaos',
      `wrong clocks, queue on ${name}: ${COUNT} retries at most ${latestMs} ms late (${correct.latestMs} ms with right clocks), ` +
        `${(calls / correct.calls).toFixed(2)} times the calls`,
    );
    for (const { attempts, earliestMs, latestMs, calls } of Object.values(skewed)) {
      expect(attempts).toBe(COUNT);
      expect(earliestMs).toBeGreaterThan(-EARLY_MAX_MS);
      expect(calls).toBeLessThan(2 * correct.calls);
      // In a test run other tests use the cores as well, so that retries are late even with correct clocks.
      if (isLong) expect(latestMs).toBeLessThan(Math.max(LATE_MAX_MS, 2 * correct.latestMs));
    }
  },
  900_000,
);
