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

test('concurrent calls share one read, and a fast read is repeated by the next call', async () => {
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

test('a slow read is cached for a limited time for the same query', async () => {
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

test('a failed read is not cached', async () => {
  const { reads, read } = aReader();
  const statistics = cachedWhereSlow(read, { keyOf });
  const failing = statistics(QUERY);
  reads[0]?.reject(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  const next = statistics(QUERY);
  reads[1]?.resolve();
  expect((await next).until).toBe('2');
});
