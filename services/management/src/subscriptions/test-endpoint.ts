import {
  createId,
  createSampleEvent,
  deliveryHeaders,
  type JobRunEvent,
  nanosecondTimestamp,
  renderPayload,
  type SigningSecrets,
  secondsTimestamp,
  secretsAt,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Egress, EgressResult } from '@runhook/egress';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ownHeadersOf } from './own-headers.ts';
import { requiredSubscription, SUBSCRIPTION_PATH } from './required-subscription.ts';
import { rotatingSecretOf } from './statements.ts';

/** Sends a signed sample to the endpoint, active or not, and leaves no trace in the database (docs/contract.md#test-endpoint). */
export function testSubscriptionEndpoint(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
  egress: Pick<Egress, 'post'>;
  deliveryTimeoutMs: number;
}): AccountEndpoint {
  return {
    method: 'GET',
    path: `${SUBSCRIPTION_PATH}/test`,
    access: WRITE_WEBHOOKS,
    hasEffect: true,
    extraMs: deps.deliveryTimeoutMs,
    async handle(request) {
      const row = await requiredSubscription(deps.prisma, request);
      const sentAt = new Date();
      const event = sampleEvent(request.account.id, createId('event', sentAt.getTime()), sentAt);
      const body = renderPayload(event, row);
      const [current, ...next] = secretsAt(rotatingSecretOf(row), sentAt.getTime());
      const { decrypt } = deps.secrets;
      const hmacSecrets: SigningSecrets = [decrypt(current), ...next.map(decrypt)];
      request.beforeCommit();
      const result = await deps.egress.post({
        url: row.clientUrl,
        headers: deliveryHeaders({
          body,
          eventId: event.eventId,
          hmacSecrets,
          sentAt,
          signatureHeader: row.signatureHeader,
          ownHeaders: ownHeadersOf(row, deps.secrets),
        }),
        body: Buffer.from(body),
      });
      return { code: 200, data: verificationOf(result) };
    },
  };
}

/** What the test endpoint answers (docs/contract.md#test-endpoint). */
export interface Verification {
  /** One plain sentence, or null when the endpoint answered with a 2xx. */
  verification_error: string | null;
  /** The endpoint's status; "504" when it did not answer in time, "502" when it could not be reached. */
  verification_status_code: string;
}

function verificationOf({ response, error }: Pick<EgressResult, 'response' | 'error'>): Verification {
  if (error || !response) {
    return {
      verification_error: error?.message ?? 'The endpoint did not answer.',
      verification_status_code: error?.code === 'timeout' ? '504' : '502',
    };
  }
  const { statusCode } = response;
  const delivered = statusCode >= 200 && statusCode < 300;
  return {
    verification_error: delivered ? null : `The endpoint answered ${statusCode}.`,
    verification_status_code: String(statusCode),
  };
}

const RUN_SECONDS = 94;

/** What the test endpoint sends: a run that has just succeeded. Only the account and the ids around it are real. */
export function sampleEvent(accountId: number, eventId: string, now: Date): JobRunEvent {
  const timestamp = nanosecondTimestamp(now.toISOString()) as string;
  const run = {
    jobId: '123',
    jobName: 'Daily job (sample)',
    runId: '12345',
    environmentId: '1234',
    environmentName: 'Production',
    engineVersion: '1.9.0',
    projectName: 'Analytics',
    projectId: '167194',
    runReason: 'Webhook test',
    runStartedAt: secondsTimestamp(new Date(now.getTime() - RUN_SECONDS * 1000)),
  };
  return createSampleEvent('job.run.completed', { eventId, accountId, timestamp }, run, () =>
    secondsTimestamp(now),
  );
}
