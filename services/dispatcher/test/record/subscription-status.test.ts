import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import {
  mergeStatuses,
  type SubscriptionStatus,
  updateSubscriptionStatuses,
} from '../../src/record/attempts.ts';
import { StatusCoalescer } from '../../src/record/status-coalescer.ts';
import { type Harness, openHarness } from '../harness.ts';

const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 7, 0, second));

/** Returns the status of one attempt that started at the second. */
function attempt(second: number, httpStatusCode: number, subscriptionId = 'wsu_1'): SubscriptionStatus {
  const dispatchedAt = at(second);
  const isSuccess = httpStatusCode < 300;
  return {
    subscriptionId,
    dispatchedAt,
    httpStatusCode,
    errorCode: isSuccess ? null : 'unsuccessful_status',
    succeededAt: isSuccess ? dispatchedAt : null,
    failures: isSuccess ? 0 : 1,
    failedSince: isSuccess ? null : dispatchedAt,
  };
}

/** Names of cases, statuses in the order in which they are noted, and the merged status. */
const RUNS: [string, SubscriptionStatus[], Omit<SubscriptionStatus, 'subscriptionId'>][] = [
  [
    'failures in a row',
    [attempt(1, 500), attempt(2, 502), attempt(3, 503)],
    {
      dispatchedAt: at(3),
      httpStatusCode: 503,
      errorCode: 'unsuccessful_status',
      succeededAt: null,
      failures: 3,
      failedSince: at(1),
    },
  ],
  [
    'a success after failures',
    [attempt(1, 500), attempt(2, 500), attempt(3, 200)],
    {
      dispatchedAt: at(3),
      httpStatusCode: 200,
      errorCode: null,
      succeededAt: at(3),
      failures: 0,
      failedSince: null,
    },
  ],
  [
    'failures after a success',
    [attempt(1, 500), attempt(2, 200), attempt(3, 500), attempt(4, 500)],
    {
      dispatchedAt: at(4),
      httpStatusCode: 500,
      errorCode: 'unsuccessful_status',
      succeededAt: at(2),
      failures: 2,
      failedSince: at(3),
    },
  ],
  [
    'attempts that end in another order',
    [attempt(2, 200), attempt(1, 504)],
    {
      dispatchedAt: at(2),
      httpStatusCode: 200,
      errorCode: null,
      succeededAt: at(2),
      failures: 1,
      failedSince: at(1),
    },
  ],
];

test.each(RUNS)('%s are merged into the same status, however they are divided', (_, attempts, expected) => {
  for (let split = 1; split < attempts.length; split++) {
    const halves = [attempts.slice(0, split), attempts.slice(split)].map((part) =>
      part.reduce(mergeStatuses),
    );
    expect(halves.reduce(mergeStatuses)).toEqual({ subscriptionId: 'wsu_1', ...expected });
  }
});

test('a status that could not be written is written with later ones', async () => {
  const written: SubscriptionStatus[][] = [];
  let isUnavailable = true;
  const statuses = new StatusCoalescer({
    periodMs: 1,
    onRejected: async () => undefined,
    onError: () => {
      isUnavailable = false;
      statuses.note(attempt(2, 500));
    },
    async write(some) {
      if (isUnavailable) throw new Error('away');
      written.push(some);
    },
  });
  statuses.note(attempt(1, 500));
  await eventually(() =>
    expect(written.flat().reduce(mergeStatuses)).toMatchObject({ failures: 2, failedSince: at(1) }),
  );
  await statuses.close();
  expect(written.flat()).toHaveLength(1);
});

test('a status that the record rejects is dropped, and all others are written once', async () => {
  const written: string[] = [];
  const rejected: string[] = [];
  const statuses = new StatusCoalescer({
    periodMs: 1,
    onError: () => undefined,
    onRejected: async ({ subscriptionId }) => void rejected.push(subscriptionId),
    async write(some) {
      if (some.some(({ subscriptionId }) => subscriptionId === 'wsu_7')) throw new RangeError('bad');
      written.push(...some.map(({ subscriptionId }) => subscriptionId));
    },
  });
  for (let index = 0; index < 16; index += 1) statuses.note(attempt(1, 500, `wsu_${index}`));
  await statuses.close();
  expect(rejected).toEqual(['wsu_7']);
  expect(written).toHaveLength(15);
  expect(new Set(written).size).toBe(15);
});

test('a status is written at once after a quiet period, and later ones together, at the latest at the close', async () => {
  const coalescer = (written: SubscriptionStatus[][]) =>
    new StatusCoalescer({
      periodMs: 3_600_000,
      onRejected: async () => undefined,
      onError: () => undefined,
      write: async (some) => void written.push(some),
    });
  const written: SubscriptionStatus[][] = [];
  const otherStatus: SubscriptionStatus[][] = [];
  const statuses = coalescer(written);
  statuses.note(attempt(1, 500));
  await eventually(() => expect(written).toHaveLength(1));
  statuses.note(attempt(2, 500));
  statuses.note(attempt(3, 500, 'wsu_2'));
  // Noted later by an idle coalescer: once it is written, every status that was due at once has been written.
  const another = coalescer(otherStatus);
  another.note(attempt(3, 200));
  await eventually(() => expect(otherStatus).toHaveLength(1));
  expect(written).toHaveLength(1);
  statuses.note(attempt(4, 200));
  await Promise.all([statuses.close(), another.close()]);
  expect(written).toMatchObject([
    [{ subscriptionId: 'wsu_1', failures: 1 }],
    [
      { subscriptionId: 'wsu_1', failures: 0, succeededAt: at(4) },
      { subscriptionId: 'wsu_2', failures: 1 },
    ],
  ]);
});

describe('in the database', () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(queueBackends().at(-1) ?? { name: 'PostgreSQL' });
  });
  afterEach(() => harness.close());

  const subscribe = () =>
    seedSubscription(harness.database, { accountId: harness.account.id, clientUrl: harness.receiver.url });
  const rowOf = (id: string) => harness.database.prisma.subscription.findUniqueOrThrow({ where: { id } });

  test.each(RUNS)('%s give the same status however they are written', async (_, attempts, expected) => {
    for (let split = 0; split < attempts.length; split++) {
      const { id } = await subscribe();
      const [first = [], second = []] = [attempts.slice(0, split), attempts.slice(split)];
      const writes = [...first, ...(split === 0 ? [] : [second.reduce(mergeStatuses)])];
      for (const status of split === 0 ? second : writes)
        await updateSubscriptionStatuses(harness.database.pool, [{ ...status, subscriptionId: id }]);
      expect(await rowOf(id)).toMatchObject({
        dispatchedAt: expected.dispatchedAt,
        httpStatusCode: expected.httpStatusCode,
        lastSuccessAt: expected.succeededAt,
        consecutiveFailures: expected.failures,
        failingSince: expected.failedSince,
      });
    }
  });

  test('failed attempts of a dispatcher make a subscription failing, and a successful one ends that', async () => {
    const { id } = await subscribe();
    harness.receiver.respondWith(500);
    await harness.startDispatcher({ deliveryMaxRetries: 2 });
    const publish = () =>
      harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never));
    await publish();
    const failing = await eventually(async () => {
      const row = await rowOf(id);
      expect(row).toMatchObject({ consecutiveFailures: 3, lastSuccessAt: null });
      return row;
    });
    expect(failing.failingSince?.getTime()).toBeLessThan(failing.dispatchedAt?.getTime() ?? 0);
    harness.receiver.respondWith(200);
    await publish();
    await eventually(async () =>
      expect(await rowOf(id)).toMatchObject({
        consecutiveFailures: 0,
        failingSince: null,
        lastSuccessAt: expect.any(Date),
      }),
    );
  });
});
