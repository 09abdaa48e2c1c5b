import {
  createHmacSecret,
  createId,
  DEFAULT_TEST_EVENT_TYPE,
  EVENT_TYPES,
  parseEndpointTest,
  secretsAt,
  type UrlProblem,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Egress } from '@runhook/egress';
import type { Logger } from '@runhook/runtime';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { InvalidRequestError } from '../http/errors.ts';
import { oneOf, QueryReader, someOf } from '../http/query-parameters.ts';
import { decryptCustomHeaders, headerColumns } from './custom-headers.ts';
import { requireEndpoint, requireSubscription, SUBSCRIPTION_PATH } from './require-subscription.ts';
import { sendSample } from './sample-delivery.ts';
import { rotatingSecretOf, signatureKeyOf } from './statements.ts';

interface Dependencies {
  prisma: PrismaClient;
  secrets: SecretBox;
  egress: Pick<Egress, 'post'>;
  deliveryTimeoutMs: number;
  logger: Pick<Logger, 'info'>;
}

/** Tests a subscription, active or not (docs/contract.md#test-endpoint). */
export function testSubscriptionEndpoint(deps: Dependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: `${SUBSCRIPTION_PATH}/test`,
    access: WRITE_WEBHOOKS,
    hasEffect: true,
    extraTimeMs: deps.deliveryTimeoutMs,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const included = reader.optional('include', someOf(['error_code', 'exchange']));
      const eventType = reader.optional('event_type', oneOf(EVENT_TYPES)) ?? DEFAULT_TEST_EVENT_TYPE;
      reader.check();
      const row = await requireSubscription(deps.prisma, request);
      requireEndpoint(row);
      const signatureKey = signatureKeyOf(row);
      const sample = {
        accountId: request.account.id,
        eventType,
        subscription: row,
        url: row.clientUrl,
        signatureHeader: row.signatureHeader,
        customHeaders: decryptCustomHeaders(row, deps.secrets),
        secretsAt: (nowMs: number) => secretsAt(rotatingSecretOf(row), nowMs, deps.secrets.decrypt),
        privateKeysAt: (nowMs: number) =>
          signatureKey && secretsAt(signatureKey, nowMs, deps.secrets.decrypt),
      };
      const { verification_error_code, exchange, ...verification } = await sendSample(
        deps,
        sample,
        request.beforeCommit,
      );
      const data = {
        ...verification,
        ...(included?.has('error_code') && { verification_error_code }),
        ...(included?.has('exchange') && { exchange }),
      };
      return { code: 200, data };
    },
  };
}

/** Tests an unsaved subscription, validated as a saved one (docs/contract.md#test-endpoint). Stores nothing. */
export function testUnsavedEndpoint(deps: Dependencies & { urlProblem: UrlProblem }): AccountEndpoint {
  const { prisma, secrets, urlProblem, deliveryTimeoutMs } = deps;
  return {
    method: 'POST',
    path: '/api/v3/accounts/:account_id/webhooks/test',
    access: WRITE_WEBHOOKS,
    extraTimeMs: deliveryTimeoutMs,
    async handle({ account, body, recorder, beforeCommit }) {
      const { fields, problems } = parseEndpointTest(body, urlProblem);
      if (problems) throw new InvalidRequestError(problems);
      const columns = headerColumns(fields, null, secrets);
      const hmacSecret = fields.hmac_secret ?? createHmacSecret();
      const verification = await sendSample(
        deps,
        {
          accountId: account.id,
          eventType: fields.event_type,
          subscription: { id: createId('subscription'), name: fields.name },
          url: fields.client_url,
          signatureHeader: columns.signatureHeader,
          customHeaders: decryptCustomHeaders(columns, secrets),
          secretsAt: () => [hmacSecret],
        },
        beforeCommit,
      );
      const isGenerated = fields.hmac_secret === undefined;
      const response = {
        code: 200,
        data: { ...verification, ...(isGenerated && { hmac_secret: hmacSecret }) },
      };
      // The request has been sent, so the database is used only if the response must be stored.
      if (recorder.batch) return recorder.batch.accept(response);
      return await prisma.$transaction((transaction) => recorder.recordWithPrisma(transaction, response));
    },
  };
}
