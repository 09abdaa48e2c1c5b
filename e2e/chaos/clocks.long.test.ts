import { expect, test } from '@jest/globals';
import { queueBackends } from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { COUNT, EARLY_MAX_MS, HOUR_MS, type Made, makeRetries } from './retries-by-clocks.ts';
import { isLong } from './world.ts';

const LATE_MAX_MS = 2_000;

/** Maps to the time by which the clock of each of two dispatchers is ahead of the server's. */
const CLOCKS: Record<string, [number, number]> = {
  right: [0, 0],
  'an hour ahead and an hour behind': [HOUR_MS, -HOUR_MS],
  ...(isLong && { 'an hour ahead': [HOUR_MS, HOUR_MS], 'an hour behind': [-HOUR_MS, -HOUR_MS] }),
};

test.each(queueBackends())(
  'dispatchers with wrong clocks make each retry on time, with less than twice the calls to the queue on $name',
  async ({ name }) => {
    const made: Record<string, Made> = {};
    for (const [clocks, aheadMs] of Object.entries(CLOCKS)) {
      made[clocks] = await makeRetries(name, aheadMs);
      process.stderr.write(`queue on ${name}, clocks ${clocks}: ${JSON.stringify(made[clocks])}\n`);
    }
    const { right, ...wrong } = made as Record<string, Made> & { right: Made };
    const latestMs = Math.max(...Object.values(wrong).map((each) => each.latestMs));
    const calls = Math.max(...Object.values(wrong).map((each) => each.calls));
    reportFigure(
      'chaos',
      `wrong clocks, queue on ${name}: ${COUNT} retries at most ${latestMs} ms late (${right.latestMs} ms with right clocks), ` +
        `${(calls / right.calls).toFixed(2)} times the calls`,
    );
    for (const { attempts, earliestMs, latestMs, calls } of Object.values(wrong)) {
      expect(attempts).toBe(COUNT);
      expect(earliestMs).toBeGreaterThan(-EARLY_MAX_MS);
      expect(calls).toBeLessThan(2 * right.calls);
      // On a busy machine retries are late even with correct clocks.
      expect(latestMs).toBeLessThan(Math.max(LATE_MAX_MS, 2 * right.latestMs));
    }
  },
  900_000,
);
