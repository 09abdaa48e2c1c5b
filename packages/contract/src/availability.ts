export const PLANS = ['free', 'developer', 'team', 'enterprise'] as const;
export const DEPLOYMENTS = ['multi_tenant', 'single_tenant_public_cloud', 'single_tenant_private'] as const;

export type Plan = (typeof PLANS)[number];
export type Deployment = (typeof DEPLOYMENTS)[number];

/**
 * Why an account has no webhooks, or null when it has them: Team and Enterprise plans, on multi-tenant or
 * single-tenant public cloud deployments (spec, section 1).
 */
export function webhooksUnavailableReason(account: {
  plan: Plan;
  deployment: Deployment;
}): 'plan' | 'deployment' | null {
  if (account.plan !== 'team' && account.plan !== 'enterprise') return 'plan';
  if (account.deployment === 'single_tenant_private') return 'deployment';
  return null;
}
