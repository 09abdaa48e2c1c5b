import type { Schemas } from '@runhook/client';

// What the API answers and takes, as its document describes it, by the names that the console has for it.
export type Session = Schemas['Session'];
export type Account = Schemas['SessionAccount'];
export type Profile = Schemas['Profile'];
export type Subscription = Schemas['Subscription'];
export type CreatedSubscription = Schemas['CreatedSubscription'];
export type SubscriptionFields = Schemas['SubscriptionFields'];
export type Health = Schemas['Health'];
export type Incident = Schemas['Incident'];
export type Rates = Schemas['Rates'];
export type Verification = Schemas['Verification'];
export type EndpointTestFields = Schemas['EndpointTest'];
/** How a test went. `hmac_secret` when one was made for it. */
export type EndpointTest = Verification & Pick<Schemas['UnsavedVerification'], 'hmac_secret'>;
export type AuditEntry = Schemas['AuditEntry'];
export type Job = Schemas['Job'];
export type Delivery = Schemas['Delivery'];
export type DeliveryStatus = Delivery['status'];
export type DeliveryDetail = Schemas['DeliveryWithAttempts'];
export type Attempt = Schemas['Attempt'];
export type AccountDelivery = Schemas['AccountDelivery'];
export type Histogram = Schemas['Histogram'];
export type HistogramBucket = Histogram['buckets'][number];
export type Run = Schemas['Run'];
export type RunStatus = Run['status'];
export type RunEvent = Schemas['RunEvent'];
export type Recovery = Schemas['Recovery'];
export type Statistics = Schemas['Statistics'];
export type StatisticsCounts = Schemas['StatisticsCounts'];
export type StatisticsBucket = Schemas['StatisticsBucket'];

/** Where the API stops counting the deliveries that match. */
export const TOTAL_COUNT_MAX = 1_000_000;
/** Where it stops when it reads what it counts: the first times that a long log is asked for, and where most is filtered out. */
const READ_COUNT_MAX = 50_000;

/** Whether there may be more of them. */
export function isCountCapped(count: number): boolean {
  return count === READ_COUNT_MAX || count >= TOTAL_COUNT_MAX;
}

export interface DeliveryPage {
  rows: Delivery[];
  /** At least so many when {@link isCountCapped}. */
  totalCount: number;
}
