/** Addresses of the API, for `request`. */
export function webhooksApi(accountId: number): string {
  return `api/v3/accounts/${accountId}/webhooks`;
}

export function subscriptionApi(accountId: number, webhookId: string): string {
  return `${webhooksApi(accountId)}/subscription/${encodeURIComponent(webhookId)}`;
}

export function deliveryApi(accountId: number, webhookId: string, deliveryId: string): string {
  return `${subscriptionApi(accountId, webhookId)}/delivery/${encodeURIComponent(deliveryId)}`;
}

export function jobsApi(accountId: number): string {
  return `api/v2/accounts/${accountId}/jobs/`;
}
