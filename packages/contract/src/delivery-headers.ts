import { sign } from './signature.ts';
import { standardWebhooksHeaders } from './standard-webhooks.ts';

const USER_AGENT = 'Runhook/0.1.0';

/** Every header of a delivery, for the dispatcher and for the test endpoint alike. */
export function deliveryHeaders(delivery: {
  body: string;
  eventId: string;
  hmacSecret: string;
  sentAt: Date;
}): Record<string, string> {
  const { body, eventId, hmacSecret, sentAt } = delivery;
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    authorization: sign(body, hmacSecret),
    ...standardWebhooksHeaders(eventId, Math.floor(sentAt.getTime() / 1000), body, hmacSecret),
  };
}

const SIGNATURE_HEADERS = ['authorization', 'webhook-signature'];

/** Request headers as the log keeps them: whoever reads the log must not be able to replay a signature. */
export function maskedHeaders(headers: Record<string, string>): Record<string, string> {
  const masked = { ...headers };
  for (const name of SIGNATURE_HEADERS) if (name in masked) masked[name] = '***';
  return masked;
}
