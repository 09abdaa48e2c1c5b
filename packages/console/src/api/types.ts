import type { Schemas } from '@runhook/client';

// Request and response types of the OpenAPI document, with the names that the console uses.
export type Session = Schemas['Session'];
export type Account = Schemas['SessionAccount'];
export type Profile = Schemas['Profile'];
export type Subscription = Schemas['Subscription'];
export type CreatedSubscription = Schemas['CreatedSubscription'];
export type SubscriptionFields = Schemas['SubscriptionFields'];
/** Name of a format; `runhook` is the payload of the contract. */
export type FormatName = NonNullable<SubscriptionFields['format']>;
export type Health = Schemas['Health'];
export type Incident = Schemas['Incident'];
export type Rates = Schemas['Rates'];
export type Verification = Schemas['Verification'];
export type EndpointTestFields = Schemas['EndpointTest'];
/** Result of a test. `hmac_secret` is set if the secret was generated for the test. */
export type EndpointTest = Verification & Pick<Schemas['UnsavedVerification'], 'hmac_secret'>;
export type OwnSession = Schemas['OwnSession'];
export type ServiceToken = Schemas['ServiceToken'];
export type AuditEntry = Schemas['AuditEntry'];
export type Job = Schemas['Job'];
export type Delivery = Schemas['Delivery'];
export type DeliveryStatus = Delivery['status'];
export type DeliveryDetail = Schemas['DeliveryWithAttempts'];
export type Attempt = Schemas['Attempt'];
export type AccountDelivery = Schemas['AccountDelivery'];
export type Histogram = Schemas['Histogram'];
export type HistogramBucket = Histogram['buckets'][number];
/** Number of recent events that a webhook would match. */
export type MatchPreview = Schemas['Preview'];
/** A webhook that did not hear about a run, and why. */
export type UnnotifiedWebhook = Schemas['Unnotified'];
export type Run = Schemas['Run'];
export type RunEvent = Schemas['RunEvent'];
export type Recovery = Schemas['Recovery'];
export type RecoveryPreview = Schemas['RecoveryPreview'];
export type Statistics = Schemas['Statistics'];
export type StatisticsCounts = Schemas['StatisticsCounts'];
export type StatisticsBucket = Schemas['StatisticsBucket'];

/** Count at which the API stops counting matching deliveries. */
export const TOTAL_COUNT_MAX = 1_000_000;
/**
 * Count at which the API stops for pages before it, if it must read every counted row: on the first requests for a long log,
 * and with a status other than `delivered`.
 */
const READ_COUNT_MAX = 50_000;

/** Whether more than `count` deliveries may match, because the API may have stopped counting. */
export function isCountCapped(count: number): boolean {
  return count === READ_COUNT_MAX || count >= TOTAL_COUNT_MAX;
}

export interface DeliveryPage {
  rows: Delivery[];
  /** The number of matching deliveries; a lower bound if {@link isCountCapped}. */
  totalCount: number;
}

/** Selection of a recovery: deliveries with the status, or what `include` names. */
export interface RecoveryRequest {
  /** Microseconds since the epoch, as digits. */
  since: string;
  until: string;
  status?: NonNullable<Recovery['delivery_status']>;
  include?: 'failed' | 'unsent' | 'all';
  /** Whether `all` includes what was delivered. */
  again?: true;
}
