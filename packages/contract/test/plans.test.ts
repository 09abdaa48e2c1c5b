import { expect, test } from '@jest/globals';
import { webhooksUnavailableReason } from '@runhook/contract';

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
