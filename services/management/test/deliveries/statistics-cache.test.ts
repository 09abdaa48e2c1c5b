import { expect, test } from '@jest/globals';
import { cacheSlowReads, type StatisticsView } from '../../src/deliveries/statistics.ts';

const keyOf = ({ subscriptionId, hours }: typeof QUERY) => `${subscriptionId} ${hours}`;
const QUERY = { subscriptionId: 'wsu_x', hours: 24 };

/** Creates reads that end on command. */
function createReader() {
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

test('concurrent calls share one read of statistics, and a fast read is repeated by the next call', async () => {
  const { reads, read } = createReader();
  const statistics = cacheSlowReads(read, { keyOf, nowMs: () => 0 });
  const concurrentReads = [statistics(QUERY), statistics(QUERY)];
  expect(reads).toHaveLength(1);
  reads[0]?.resolve();
  const [firstView, secondView] = await Promise.all(concurrentReads);
  expect(firstView).toBe(secondView);
  const next = statistics(QUERY);
  expect(reads).toHaveLength(2);
  reads[1]?.resolve();
  expect((await next).until).toBe('2');
});

test('a slow read of statistics is cached for a limited time for the same query', async () => {
  const { reads, read } = createReader();
  let nowMs = 0;
  const statistics = cacheSlowReads(read, { keyOf, nowMs: () => nowMs });
  const firstRead = statistics(QUERY);
  nowMs = 1_000;
  reads[0]?.resolve();
  const view = await firstRead;
  nowMs = 20_999;
  expect(await statistics(QUERY)).toBe(view);
  void statistics({ ...QUERY, hours: 1 });
  void statistics({ ...QUERY, subscriptionId: 'wsu_y' });
  expect(reads).toHaveLength(3);
  nowMs = 21_000;
  void statistics(QUERY);
  expect(reads).toHaveLength(4);
});

test('a failed read of statistics is not cached', async () => {
  const { reads, read } = createReader();
  const statistics = cacheSlowReads(read, { keyOf });
  const failing = statistics(QUERY);
  reads[0]?.reject(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  const next = statistics(QUERY);
  reads[1]?.resolve();
  expect((await next).until).toBe('2');
});
