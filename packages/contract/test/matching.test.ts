import { expect, test } from '@jest/globals';
import { subscriptionMatches, webhooksUnavailableReason } from '@runhook/contract';

const subscription = { active: true, eventTypes: ['job.run.errored'], jobIds: new Set(['7', '8']) };
const event = { eventType: 'job.run.errored', jobId: '7' } as const;

test.each([
  ['its job and event type', {}, true],
  ['all jobs when it names none', { jobIds: new Set() }, true],
  ['no other job', { jobIds: new Set(['70']) }, false],
  ['no other event type', { eventTypes: ['job.run.completed'] }, false],
  ['nothing while inactive', { active: false }, false],
])('a subscription matches %s', (_case, change, fires) => {
  expect(subscriptionMatches({ ...subscription, ...change }, event)).toBe(fires);
});

test.each([
  ['free', 'multi_tenant', 'plan'],
  ['developer', 'multi_tenant', 'plan'],
  ['team', 'multi_tenant', null],
  ['enterprise', 'multi_tenant', null],
  ['team', 'single_tenant_public_cloud', null],
  ['enterprise', 'single_tenant_public_cloud', null],
  ['team', 'single_tenant_private', 'deployment'],
  ['enterprise', 'single_tenant_private', 'deployment'],
] as const)('the reason why %s on %s has no webhooks is %s', (plan, deployment, reason) => {
  expect(webhooksUnavailableReason({ plan, deployment })).toBe(reason);
});
