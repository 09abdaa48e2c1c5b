import { expect, test } from '@jest/globals';
import { cachedWhereSlow, type StatisticsView } from '../../src/deliveries/statistics.ts';

const keyOf = ({ subscriptionId, hours }: typeof QUERY) => `${subscriptionId} ${hours}`;
const QUERY = { subscriptionId: 'wsu_x', hours: 24 };

/** Creates reads that end on command. */
function aReader() {
  const reads: PromiseWithResolvers[] = [];
  const read = () =>
    new Promise<StatisticsView>((resolve, reject) => {
      reads.push({ resolve: () => resolve({ until: String(reads.length) } as StatisticsView), reject });
    });
  return { reads, read };
}

interface PromiseWithResolvers {
  resolve(): void;
  reject(error: Error): void;
}

test('calls at once share one read, and what was quick to read is read anew by the next', async () => {
  const { reads, read } = aReader();
  const statistics = cachedWhereSlow(read, { keyOf, nowMs: () => 0 });
  const both = [statistics(QUERY), statistics(QUERY)];
  expect(reads).toHaveLength(1);
  reads[0]?.resolve();
  const [one, other] = await Promise.all(both);
  expect(one).toBe(other);
  const next = statistics(QUERY);
  expect(reads).toHaveLength(2);
  reads[1]?.resolve();
  expect((await next).until).toBe('2');
});

test('what was slow to read is told again for a while, to those who ask for the same', async () => {
  const { reads, read } = aReader();
  let now = 0;
  const statistics = cachedWhereSlow(read, { keyOf, nowMs: () => now });
  const first = statistics(QUERY);
  now = 1_000;
  reads[0]?.resolve();
  const view = await first;
  now = 20_999;
  expect(await statistics(QUERY)).toBe(view);
  void statistics({ ...QUERY, hours: 1 });
  void statistics({ ...QUERY, subscriptionId: 'wsu_y' });
  expect(reads).toHaveLength(3);
  now = 21_000;
  void statistics(QUERY);
  expect(reads).toHaveLength(4);
});

test('a read that failed is not kept', async () => {
  const { reads, read } = aReader();
  const statistics = cachedWhereSlow(read, { keyOf });
  const failing = statistics(QUERY);
  reads[0]?.reject(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  const next = statistics(QUERY);
  reads[1]?.resolve();
  expect((await next).until).toBe('2');
});
