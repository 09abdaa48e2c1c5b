import type { EventType } from '@runhook/contract';
import type { Subscription, SubscriptionFields } from '../api/types.ts';

/** What the form holds. */
export interface WebhookValues {
  name: string;
  description: string;
  eventTypes: EventType[];
  /** Empty: all jobs. */
  jobIds: string[];
  clientUrl: string;
  active: boolean;
}

export const NEW_WEBHOOK: WebhookValues = {
  name: '',
  description: '',
  eventTypes: [],
  jobIds: [],
  clientUrl: '',
  active: true,
};

export function valuesOf(subscription: Subscription): WebhookValues {
  return {
    name: subscription.name,
    description: subscription.description,
    eventTypes: subscription.event_types,
    jobIds: subscription.job_ids,
    clientUrl: subscription.client_url,
    active: subscription.active,
  };
}

export function fieldsOf(values: WebhookValues): SubscriptionFields {
  return {
    name: values.name.trim(),
    description: values.description,
    event_types: values.eventTypes,
    job_ids: values.jobIds.map(Number),
    client_url: values.clientUrl.trim(),
    active: values.active,
  };
}
