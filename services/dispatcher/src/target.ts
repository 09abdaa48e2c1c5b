import { type Deployment, type Plan, type RotatingSecret, rotatingSecret } from '@runhook/contract';

/** Destination of a delivery, from the current subscription and its account. */
export interface Target {
  clientUrl: string;
  /** Server of `clientUrl`, which other subscriptions may share. */
  endpoint: string;
  /** Signing secret, encrypted. */
  secret: RotatingSecret;
  /** Ed25519 private key, encrypted; null if the subscription has none. */
  signatureKey: RotatingSecret | null;
  /** Header of the signature; null for `Authorization`. */
  signatureHeader: string | null;
  /** The subscriber's headers as an encrypted JSON object; null if there are none. */
  headersCiphertext: string | null;
  /** Name of the format of the body; null for the payload of the contract. */
  format: string | null;
  /** Options of the format as an encrypted JSON object; null if there are none. */
  formatOptionsCiphertext: string | null;
  /** Whether the events of a run are sent in their order. */
  ordered: boolean;
  /** Requests per second; null without a limit. */
  rateLimit: number | null;
  /** Whether the response 410 deactivates the subscription. */
  deactivateOn410: boolean;
  /**
   * Time of the last change by a request, as digits in microseconds; null if no response deactivates the subscription: it
   * has neither a format nor `deactivateOn410`.
   */
  updatedAt: string | null;
  /** End of the time for which the endpoint asked for no requests, by PostgreSQL's clock; 0 if it never asked. */
  blockedUntilMs: number;
  active: boolean;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
}

/** Columns of a target, from `subscriptions s` and its `accounts a`. */
export const TARGET_COLUMNS = `
  s.client_url, s.hmac_secret_ciphertext, s.next_hmac_secret_ciphertext, s.rotation_ends_at_micros,
  s.signature_key_ciphertext, s.next_signature_key_ciphertext, s.signature_header, s.headers_ciphertext,
  s.format, s.format_options_ciphertext, s.ordered, s.rate_limit, s.deactivate_on_410,
  CASE WHEN s.deactivate_on_410 OR s.format IS NOT NULL THEN s.updated_at_micros END AS target_updated_at,
  (extract(epoch FROM s.blocked_until) * 1000)::bigint AS blocked_until_ms, s.active,
  s.deleted_at IS NOT NULL AS deleted, a.plan, a.deployment`;

/** A row with {@link TARGET_COLUMNS}. */
export interface TargetRow {
  [column: string]: unknown;
  /** Null when the join found no subscription. */
  client_url: string | null;
  hmac_secret_ciphertext: string;
  next_hmac_secret_ciphertext: string | null;
  signature_key_ciphertext: string | null;
  next_signature_key_ciphertext: string | null;
  rotation_ends_at_micros: string | null;
  signature_header: string | null;
  headers_ciphertext: string | null;
  format: string | null;
  format_options_ciphertext: string | null;
  ordered: boolean;
  rate_limit: number | null;
  deactivate_on_410: boolean;
  target_updated_at: string | null;
  blocked_until_ms: string | null;
  active: boolean;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
}

/** Returns null when the subscription's row no longer exists. */
export function toTarget(row: TargetRow): Target | null {
  const { client_url: clientUrl, signature_header: signatureHeader, active, deleted, plan, deployment } = row;
  if (clientUrl === null) return null;
  const { signature_key_ciphertext: key, rotation_ends_at_micros: rotationEndsAt } = row;
  return {
    clientUrl,
    endpoint: endpointOf(clientUrl),
    secret: rotatingSecret(row.hmac_secret_ciphertext, row.next_hmac_secret_ciphertext, rotationEndsAt),
    signatureKey:
      key === null ? null : rotatingSecret(key, row.next_signature_key_ciphertext, rotationEndsAt),
    signatureHeader,
    headersCiphertext: row.headers_ciphertext,
    format: row.format,
    formatOptionsCiphertext: row.format_options_ciphertext,
    ordered: row.ordered,
    rateLimit: row.rate_limit,
    deactivateOn410: row.deactivate_on_410,
    updatedAt: row.target_updated_at,
    blockedUntilMs: Number(row.blocked_until_ms ?? 0),
    active,
    deleted,
    plan,
    deployment,
  };
}

/** Returns scheme, host and port of a URL; other text unchanged. */
export function endpointOf(clientUrl: string): string {
  return URL.canParse(clientUrl) ? new URL(clientUrl).origin : clientUrl;
}
