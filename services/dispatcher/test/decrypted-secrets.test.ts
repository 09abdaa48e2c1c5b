import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { rotatingSecret, sampleEvent } from '@runhook/contract';
import { createMetricsRegistry } from '@runhook/runtime';
import { eventually } from '@runhook/testing';
import { attempt } from '../src/attempt.ts';
import type { Dispatcher } from '../src/dispatcher.ts';
import { createDispatcherMetrics } from '../src/telemetry/metrics.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const MB = 1_024 * 1_024;
/** Size of a decrypted secret, large enough to show in the used memory whether one of them is retained. */
const SECRET_BYTES = 4 * MB;
const ATTEMPTS = 10;

const EVENT = sampleEvent('job.run.started', { accountId: 1, eventId: 'wev_1', now: new Date() });
const DELIVERY = {
  ...{ id: 'wde_1', day: '2026-01-31', trigger: 'event', cycle: 0, attemptCount: 0 },
  ...{ webhookName: 'Alerts', subscriptionId: 'wsu_1', event: EVENT },
} as unknown as Parameters<typeof attempt>[2];

const SLOT = { lane: { subscriptionId: 'wsu_1', blockedMs: 0 } } as Parameters<typeof attempt>[1];

/** Returns a webhook within a rotation, whose requests have two signatures, and with a custom header. */
const createTarget = (number: number) =>
  ({
    ...{ clientUrl: 'http://127.0.0.1/', endpoint: 'http://127.0.0.1', signatureHeader: null },
    secret: rotatingSecret(`current ${number}`, `next ${number}`, String((Date.now() + 3_600_000) * 1_000)),
    signatureKey: null,
    headersCiphertext: `headers ${number}`,
    format: null,
    ...{ active: true, deleted: false, plan: 'enterprise', deployment: 'multi_tenant' },
  }) as Parameters<typeof attempt>[3];

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('the secrets of a webhook are decrypted for each attempt, and nothing retains them afterwards', async () => {
  const decrypted: string[] = [];
  const exchange = { durationMs: 1, error: null, response: null, timings: null, costly: false };
  const dispatcher = {
    spans: {
      attempt: (_delivery: unknown, _target: unknown, send: (headers: object) => unknown) => send({}),
    },
    limits: { release: () => undefined },
    requests: { noteRelease: () => undefined },
    egress: { post: async () => exchange },
    secrets: {
      decrypt(ciphertext: string) {
        decrypted.push(ciphertext);
        const secret = randomBytes(SECRET_BYTES / 2).toString('hex');
        return ciphertext.startsWith('headers') ? `{"X-Gate":"${secret}"}` : secret;
      },
    },
    retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
    metrics: createDispatcherMetrics(createMetricsRegistry({ service: 'test' })),
    clock: { nowMs: () => Date.now() },
  } as unknown as Dispatcher;
  const numbers = Array.from({ length: ATTEMPTS }, (_, number) => number);
  // The first attempt loads code that later ones share.
  const results = [await attempt(dispatcher, SLOT, DELIVERY, createTarget(0))];
  const before = usedBytes();
  for (const number of numbers) results.push(await attempt(dispatcher, SLOT, DELIVERY, createTarget(number)));
  // Several collections are needed: V8 may release the memory of buffers after the collection that finds them.
  await eventually(() => expect(usedBytes() - before).toBeLessThan(SECRET_BYTES));
  expect(results).toHaveLength(1 + ATTEMPTS);
  expect(decrypted.filter((ciphertext) => ciphertext.endsWith(' 0'))).toHaveLength(2 * 3);
  expect(decrypted).toHaveLength((1 + ATTEMPTS) * 3);
});
