/** Addresses of pages, below the console's root. */
export const SIGN_IN_PATH = '/sign-in';
export const SIGN_OUT_PATH = '/sign-out';
export const API_ACCESS_PATH = '/profile/api-access';

export function webhooksPath(accountId: number): string {
  return `/accounts/${accountId}/settings/webhooks`;
}

export function newWebhookPath(accountId: number): string {
  return `${webhooksPath(accountId)}/new`;
}

export function webhookPath(accountId: number, webhookId: string): string {
  return `${webhooksPath(accountId)}/${webhookId}`;
}

export function editWebhookPath(accountId: number, webhookId: string): string {
  return `${webhookPath(accountId, webhookId)}/edit`;
}

export function deliveryPath(accountId: number, webhookId: string, deliveryId: string): string {
  return `${webhookPath(accountId, webhookId)}/deliveries/${deliveryId}`;
}
