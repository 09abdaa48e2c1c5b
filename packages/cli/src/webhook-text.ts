import type { Schemas } from '@runhook/client';
import { EVENT_TYPES } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import { InvalidArgumentError } from 'commander';
import { timeText } from './command.ts';
import { deliveryFacts } from './webhook-options.ts';

/* Shared by the commands that read webhooks and those that write them. */

export const WEBHOOKS_PATH = '/api/v3/accounts/{account_id}/webhooks';
export const WEBHOOK_PATH = `${WEBHOOKS_PATH}/subscription/{webhook_id}` as const;

export type Webhook = Schemas['Subscription'];

export const WEBHOOK_ARGUMENT: [string, string] = ['<webhook>', 'id or name of the webhook'];

export type EventType = Schemas['SubscriptionFields']['event_types'][number];

export function eventType(text: string): string {
  if (!EVENT_TYPES.some((type) => type === text))
    throw new InvalidArgumentError(`It must be one of ${EVENT_TYPES.join(', ')}.`);
  return text;
}

/** "active", "failing since 2026-01-31T12:00:00Z", "inactive". */
export function stateOf({ active, health }: Webhook): string {
  if (!active) return 'inactive';
  return health?.failing_since === undefined ? 'active' : `failing since ${timeText(health.failing_since)}`;
}

export const urlText = ({ client_url: url }: Pick<Webhook, 'client_url'>) =>
  url || 'none: it has only a feed';

export function webhookText(webhook: Webhook): string {
  const facts: [string, string | undefined][] = [
    ['id', webhook.id],
    ['name', webhook.name],
    ['description', webhook.description],
    ['url', urlText(webhook)],
    ['state', stateOf(webhook)],
    ['deactivated', webhook.deactivate_reason],
    ['events', webhook.event_types.join(', ')],
    ['jobs', webhook.job_ids.join(', ') || 'all'],
    ['signature header', webhook.signature_header],
    ['custom headers', Object.keys(webhook.headers ?? {}).join(', ')],
    [
      'last attempt',
      webhook.dispatched_at && `${timeText(webhook.dispatched_at)}, ${webhook.http_status_code}`,
    ],
    ['secret', 'hmac_secret' in webhook ? `${webhook.hmac_secret} (not shown again)` : undefined],
    ['old secret valid until', timeText(webhook.secret_rotation?.ends_at)],
    ['public keys', webhook.signature_key?.public_keys.join(', ')],
    ['old key pair valid until', timeText(webhook.signature_key?.rotation?.ends_at)],
    ...deliveryFacts(webhook),
  ];
  const rows = facts.flatMap(([name, value]) => (value ? [[`${name}:`, value]] : []));
  return table(['', ''], rows).trimStart();
}
