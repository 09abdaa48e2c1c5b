import { expect, test } from '@jest/globals';
import { type Delivery, mustUseLane, nextStep, skipsBlockedLane } from '../../src/policy/next-step.ts';
import type { Target } from '../../src/target.ts';

const target: Target = {
  clientUrl: 'https://example.com',
  endpoint: 'https://example.com',
  secret: { current: 'x', rotation: null },
  signatureKey: null,
  signatureHeader: null,
  headersCiphertext: null,
  format: null,
  formatOptionsCiphertext: null,
  deactivateOn410: false,
  updatedAt: null,
  blockedUntilMs: 0,
  ordered: false,
  rateLimit: null,
  active: true,
  deleted: false,
  plan: 'team',
  deployment: 'multi_tenant',
};
const nowMs = 1_000_000;
const delivery = { status: 'pending', cycle: 0, nextAttemptAtMs: nowMs, target } as Delivery;

test.each([
  ['is attempted when it is due', delivery, { kind: 'attempt', target }],
  ['is attempted without a due time', { ...delivery, nextAttemptAtMs: null }, { kind: 'attempt', target }],
  [
    'is attempted when it is due within the tolerance of clocks',
    { ...delivery, nextAttemptAtMs: nowMs + 900 },
    { kind: 'attempt', target },
  ],
  [
    'waits when it is not due',
    { ...delivery, nextAttemptAtMs: nowMs + 5_000 },
    { kind: 'wait', delayMs: 5_000 },
  ],
  ['is skipped when its row no longer exists', null, { kind: 'skip' }],
  ['is skipped when it was delivered', { ...delivery, status: 'delivered' }, { kind: 'skip' }],
  ['is skipped when it has failed', { ...delivery, status: 'failed' }, { kind: 'skip' }],
  ['is skipped when it was cancelled', { ...delivery, status: 'cancelled' }, { kind: 'skip' }],
  ['is skipped when another cycle has begun', { ...delivery, cycle: 6 }, { kind: 'skip' }],
  [
    'is cancelled when the subscription is inactive',
    { ...delivery, target: { ...target, active: false } },
    { kind: 'cancel', reason: 'The subscription is inactive.' },
  ],
  [
    'is cancelled when the webhook has only a feed',
    { ...delivery, target: { ...target, clientUrl: '' } },
    { kind: 'cancel', reason: 'The webhook has no endpoint: its events are in its feed.' },
  ],
  [
    'is cancelled when the subscription was deleted',
    { ...delivery, target: { ...target, deleted: true } },
    { kind: 'cancel', reason: 'The subscription was deleted.' },
  ],
  [
    'is cancelled when the row of the subscription no longer exists',
    { ...delivery, target: null },
    { kind: 'cancel', reason: 'The subscription was deleted.' },
  ],
  [
    'is cancelled when the plan of the account does not include webhooks',
    { ...delivery, target: { ...target, plan: 'free' } },
    { kind: 'cancel', reason: "The account's plan does not include webhooks." },
  ],
  [
    'is cancelled when the account moved to a private deployment',
    { ...delivery, target: { ...target, deployment: 'single_tenant_private' } },
    { kind: 'cancel', reason: "The account's deployment does not include webhooks." },
  ],
])('a queued delivery %s', (_case, candidate, step) => {
  expect(nextStep(candidate as Delivery | null, 0, nowMs)).toEqual(step);
});

test.each([
  ['a webhook without options', 'automatic', {}, false],
  ['an ordered webhook', 'automatic', { ordered: true }, true],
  ['a redelivery of an ordered webhook', 'manual', { ordered: true }, false],
  ['a rate-limited webhook', 'automatic', { rateLimit: 5 }, true],
  ['a redelivery of a rate-limited webhook', 'manual', { rateLimit: 5 }, true],
] as const)('the lane makes the attempts of %s: %s, %o, %s', (_name, trigger, options, expected) => {
  expect(mustUseLane({ trigger }, { ...target, ...options })).toBe(expected);
});

test.each([
  ['a redelivery', { trigger: 'manual' }, null, true],
  ['its retries', { trigger: 'manual', attemptCount: 2 }, null, false],
  ['a retry', { trigger: 'automatic' }, null, false],
  ['a recovery', { trigger: 'manual', isRecovered: true }, null, false],
  ['a redelivery to Slack', { trigger: 'manual' }, 'slack', true],
  ['a redelivery to PagerDuty', { trigger: 'manual' }, 'pagerduty', false],
] as const)('%s does not wait for the end of a block: %o, %s, %s', (_name, fields, format, expected) => {
  const redelivery = { cycle: 1, attemptCount: 1, isRecovered: false, ...fields };
  expect(skipsBlockedLane(redelivery, { format })).toBe(expected);
});
