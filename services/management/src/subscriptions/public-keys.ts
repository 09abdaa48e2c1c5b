import { isId } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import { addressNetwork } from '../http/client-network.ts';
import type { PublicEndpoint } from '../http/endpoint.ts';
import { TooManyRequestsError } from '../http/errors.ts';
import type { Limiter } from '../http/limits.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { subscriptionNotFound } from './require-subscription.ts';
import { PUBLIC_KEY_COLUMNS, publicKeysOf } from './signature-key.ts';

/** Limit of one client, as the call reads the database for anyone. */
export const PUBLIC_KEYS_LIMIT = {
  name: 'public-keys',
  callsMax: 300,
  windowSeconds: 60,
  rejectsFromMemory: true,
} as const;

/** Shorter than any overlap of a rotation, so that caches have the new key before the old one is replaced. */
const CACHE_SECONDS = 300;

/**
 * Returns the public keys of a webhook to anyone who has its id, which is in the bodies of its deliveries
 * (docs/contract.md#ed25519-signatures). The 404 does not tell whether a webhook without a key pair exists.
 */
export function publicKeysEndpoint({
  prisma,
  limit,
}: {
  prisma: PrismaClient;
  limit: Pick<Limiter, 'consume'>;
}): PublicEndpoint {
  return {
    method: 'GET',
    path: '/.well-known/webhook-keys/:webhook_id',
    access: 'anyone',
    async handle({ param, query, clientAddress }) {
      new QueryReader(query).check();
      const counted = await limit.consume(addressNetwork(clientAddress));
      if (counted.kind === 'rejected') throw new TooManyRequestsError(counted.retryAfterSeconds);
      const id = param('webhook_id');
      const row = isId('subscription', id)
        ? await prisma.subscription.findFirst({ where: { id, deletedAt: null }, select: PUBLIC_KEY_COLUMNS })
        : null;
      const data = row && publicKeysOf(row);
      if (!data) throw subscriptionNotFound();
      return { code: 200, data, headers: { 'cache-control': `public, max-age=${CACHE_SECONDS}` } };
    },
  };
}
