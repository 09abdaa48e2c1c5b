import type { Deployment, Plan } from '@runhook/contract';

/** Where a delivery goes, as the subscription and its account are at this moment. */
export interface Target {
  clientUrl: string;
  /** The server behind `clientUrl`: subscriptions that post to the same one share its fate. */
  endpoint: string;
  hmacSecretCiphertext: string;
  active: boolean;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
}

/** What a statement selects for a target, of `subscriptions s` and its `accounts a`. */
export const TARGET_COLUMNS =
  's.client_url, s.hmac_secret_ciphertext, s.active, s.deleted_at IS NOT NULL AS deleted, a.plan, a.deployment';

/** A row with {@link TARGET_COLUMNS}. */
export interface TargetRow {
  [column: string]: unknown;
  /** Null when the join found no subscription. */
  client_url: string | null;
  hmac_secret_ciphertext: string;
  active: boolean;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
}

/** Null when the subscription's row is gone. */
export function targetOf(row: TargetRow): Target | null {
  const { client_url: clientUrl, active, deleted, plan, deployment } = row;
  if (clientUrl === null) return null;
  const hmacSecretCiphertext = row.hmac_secret_ciphertext;
  return {
    clientUrl,
    endpoint: endpointOf(clientUrl),
    hmacSecretCiphertext,
    active,
    deleted,
    plan,
    deployment,
  };
}

/** Scheme, host and port. */
function endpointOf(clientUrl: string): string {
  return URL.canParse(clientUrl) ? new URL(clientUrl).origin : clientUrl;
}
