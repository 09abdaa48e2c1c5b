import {
  createHmacSecret,
  createId,
  DEFAULT_TEST_EVENT_TYPE,
  EVENT_TYPES,
  parseEndpointTest,
  parseStoredTest,
  secretsAt,
  type TestMessageFields,
  type UrlProblem,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Egress } from '@runhook/egress';
import type { Logger } from '@runhook/runtime';
import {
  type AccountEndpoint,
  type AccountRequest,
  WRITE_WEBHOOKS,
  type WriteRequest,
} from '../http/endpoint.ts';
import { InvalidRequestError } from '../http/errors.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import { oneOf, QueryReader, someOf } from '../http/query-parameters.ts';
import { decryptCustomHeaders, headerColumns } from './custom-headers.ts';
import { requireEndpoint, requireSubscription, SUBSCRIPTION_PATH } from './require-subscription.ts';
import { type Sample, sendSample } from './sample-delivery.ts';
import { rotatingSecretOf, type SubscriptionWithSecret, signatureKeyOf } from './statements.ts';
import { testEvent, testFormat } from './test-message.ts';

interface Dependencies {
  prisma: PrismaClient;
  secrets: SecretBox;
  egress: Pick<Egress, 'post'>;
  deliveryTimeoutMs: number;
  logger: Pick<Logger, 'info'>;
  /** Setting `PUBLIC_URL`; null if it is not set. */
  consoleUrl: string | null;
}

const STORED_TEST_PATH = `${SUBSCRIPTION_PATH}/test` as const;

/** Tests a subscription, active or not, with a sample (docs/contract.md#test-endpoint). */
export function testSubscriptionEndpoint(deps: Dependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: STORED_TEST_PATH,
    access: WRITE_WEBHOOKS,
    hasEffect: true,
    extraTimeMs: deps.deliveryTimeoutMs,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const included = reader.optional('include', someOf(['error_code', 'exchange']));
      const eventType = reader.optional('event_type', oneOf(EVENT_TYPES)) ?? DEFAULT_TEST_EVENT_TYPE;
      reader.check();
      const row = await requireSubscription(deps.prisma, request);
      const sample = await storedSample(deps, request, row, { event_type: eventType });
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

/** Tests a subscription with another format or a past event (docs/contract.md#test-endpoint). Stores nothing. */
export function testStoredEndpoint(deps: Dependencies): AccountEndpoint {
  return {
    method: 'POST',
    path: STORED_TEST_PATH,
    access: WRITE_WEBHOOKS,
    extraTimeMs: deps.deliveryTimeoutMs,
    async handle(request) {
      const { fields, problems } = parseStoredTest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      const row = await requireSubscription(deps.prisma, request);
      const sample = await storedSample(deps, request, row, fields);
      const data = await sendSample(deps, sample, request.beforeCommit);
      return await respond(deps, request, { code: 200, data });
    },
  };
}

async function storedSample(
  { prisma, secrets, consoleUrl }: Dependencies,
  { account }: AccountRequest,
  row: SubscriptionWithSecret,
  fields: TestMessageFields,
): Promise<Sample> {
  requireEndpoint(row);
  const signatureKey = signatureKeyOf(row);
  const message = testFormat(fields, row, secrets);
  return {
    accountId: account.id,
    event: await testEvent(prisma, account.id, fields, message),
    message,
    consoleUrl,
    subscription: row,
    url: row.clientUrl,
    signatureHeader: row.signatureHeader,
    customHeaders: decryptCustomHeaders(row, secrets),
    secretsAt: (nowMs) => secretsAt(rotatingSecretOf(row), nowMs, secrets.decrypt),
    privateKeysAt: (nowMs) => signatureKey && secretsAt(signatureKey, nowMs, secrets.decrypt),
  };
}

/** Tests an unsaved subscription, validated as a saved one (docs/contract.md#test-endpoint). Stores nothing. */
export function testUnsavedEndpoint(deps: Dependencies & { urlProblem: UrlProblem }): AccountEndpoint {
  const { prisma, secrets, urlProblem, deliveryTimeoutMs, consoleUrl } = deps;
  return {
    method: 'POST',
    path: '/api/v3/accounts/:account_id/webhooks/test',
    access: WRITE_WEBHOOKS,
    extraTimeMs: deliveryTimeoutMs,
    async handle(request) {
      const { account, body, beforeCommit } = request;
      const { fields, problems } = parseEndpointTest(body, urlProblem);
      if (problems) throw new InvalidRequestError(problems);
      const columns = headerColumns(fields, null, secrets);
      const hmacSecret = fields.hmac_secret ?? createHmacSecret();
      const message = testFormat(fields, null, secrets);
      const verification = await sendSample(
        deps,
        {
          accountId: account.id,
          event: await testEvent(prisma, account.id, fields, message),
          message,
          consoleUrl,
          subscription: { id: createId('subscription'), name: fields.name },
          url: fields.client_url,
          signatureHeader: columns.signatureHeader,
          customHeaders: decryptCustomHeaders(columns, secrets),
          secretsAt: () => [hmacSecret],
        },
        beforeCommit,
      );
      const isGenerated = fields.hmac_secret === undefined;
      const data = { ...verification, ...(isGenerated && { hmac_secret: hmacSecret }) };
      return await respond(deps, request, { code: 200, data });
    },
  };
}

/** The request has been sent, so the database is used only if the response must be stored. */
async function respond(
  { prisma }: Dependencies,
  { recorder }: WriteRequest,
  response: { code: number; data: object },
): Promise<RecordedResponse> {
  if (recorder.batch) return recorder.batch.accept(response);
  return await prisma.$transaction((transaction) => recorder.recordWithPrisma(transaction, response));
}
