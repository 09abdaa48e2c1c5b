import { type JobRunEvent, subscriptionMatches, webhooksUnavailableReason } from '@runhook/contract';
import type { AccountSubscriptions, KnownSubscription } from './data/account-subscriptions.ts';

/** The subscriptions that an event of the account fires for; none when the account has no webhooks. */
export function matching(account: AccountSubscriptions, event: JobRunEvent): KnownSubscription[] {
  if (webhooksUnavailableReason(account) !== null) return [];
  const { eventType, data } = event;
  return account.subscriptions.filter(({ eventTypes, jobIds }) =>
    subscriptionMatches({ active: true, eventTypes, jobIds }, { eventType, jobId: data.jobId }),
  );
}
