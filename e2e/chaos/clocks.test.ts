import { expect, test } from '@jest/globals';
import { queueBackends } from '@runhook/testing';
import { COUNT, EARLY_MAX_MS, HOUR_MS, makeRetries } from './retries-by-clocks.ts';

// How late they are, and how many calls of the queue they cost, is compared with right clocks in clocks.long.test.ts.
test('dispatchers whose clocks are an hour ahead and an hour behind make each retry once, and none early, on either queue', async () => {
  const made = await Promise.all(queueBackends().map(({ name }) => makeRetries(name, [HOUR_MS, -HOUR_MS])));
  for (const { attempts, earliestMs } of made) {
    expect(attempts).toBe(COUNT);
    expect(earliestMs).toBeGreaterThan(-EARLY_MAX_MS);
  }
});
