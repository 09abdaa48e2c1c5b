/** Paths of pages, relative to the console's root. */
export const SIGN_IN_PATH = '/sign-in';
export const SIGN_OUT_PATH = '/sign-out';
export const API_ACCESS_PATH = '/profile/api-access';
export const SECURITY_PATH = '/profile/security';

export function webhooksPath(accountId: number): string {
  return `/accounts/${accountId}/settings/webhooks`;
}

export function runsPath(accountId: number): string {
  return `/accounts/${accountId}/runs`;
}

export function runPath(accountId: number, runId: number | string): string {
  return `${runsPath(accountId)}/${runId}`;
}

export function eventsPath(accountId: number): string {
  return `/accounts/${accountId}/events`;
}

export function auditPath(accountId: number): string {
  return `/accounts/${accountId}/settings/audit`;
}

export function tokensPath(accountId: number): string {
  return `/accounts/${accountId}/settings/tokens`;
}

export function newWebhookPath(accountId: number): string {
  return `${webhooksPath(accountId)}/new`;
}

/** The form of a new webhook with the values of another one. */
export function duplicateWebhookPath(accountId: number, webhookId: string): string {
  return `${newWebhookPath(accountId)}?from=${encodeURIComponent(webhookId)}`;
}

export function webhookPath(accountId: number, webhookId: string): string {
  return `${webhooksPath(accountId)}/${webhookId}`;
}

export function editWebhookPath(accountId: number, webhookId: string): string {
  return `${webhookPath(accountId, webhookId)}/edit`;
}

export function webhookHelpPath(accountId: number, webhookId: string): string {
  return `${webhookPath(accountId, webhookId)}/help`;
}

export function signaturePath(accountId: number, webhookId: string): string {
  return `${webhookPath(accountId, webhookId)}/signature`;
}

export function deliveryPath(accountId: number, webhookId: string, deliveryId: string): string {
  return `${webhookPath(accountId, webhookId)}/deliveries/${deliveryId}`;
}

/**
 * Returns the path to open after signing in: `next` if it is a path below the console's root, otherwise the root. Rejects
 * paths that name another host (`//host`, `/\host`, a scheme), contain control characters, or lead back to the sign-in.
 */
export function safeRedirectPath(next: string | null): string {
  if (next === null || !/^\/(?![/\\])[^\\]*$/.test(next)) return '/';
  for (const character of next) if (character < ' ' || character === '\u007f') return '/';
  const HOST = 'http://console.invalid';
  if (!URL.canParse(next, HOST)) return '/';
  const { origin, pathname, search } = new URL(next, HOST);
  if (origin !== HOST || /^\/(\/|sign-(in|out)\b)/.test(pathname)) return '/';
  return pathname + search;
}
