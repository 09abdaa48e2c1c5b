import { createHmac } from 'node:crypto';

const SECRET_PREFIX = 'whsec_';

/**
 * The three headers of the Standard Webhooks scheme, which receivers with those libraries use for replay
 * protection. Their key is the base64 part of the secret, decoded, as those libraries hold it.
 * @param timestampSeconds seconds since the epoch at which this attempt is signed
 */
export function standardWebhooksHeaders(
  eventId: string,
  timestampSeconds: number,
  body: string,
  hmacSecret: string,
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const key = Buffer.from(hmacSecret.slice(SECRET_PREFIX.length), 'base64');
  const signature = createHmac('sha256', key)
    .update(`${eventId}.${timestampSeconds}.`)
    .update(body)
    .digest('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${signature}`,
  };
}
