import { type DeliveryJob, type JobRunEvent, NOT_ACCEPTED } from '@runhook/contract';
import type { Traces } from '@runhook/runtime';
import type { AttemptableDelivery, AttemptResult } from '../attempt.ts';
import type { DeliverResult } from '../deliver.ts';
import type { FanOutResult } from '../fan-out.ts';
import { nextTrigger } from '../policy/next-step.ts';
import type { Target } from '../target.ts';

/**
 * Creates spans of the dispatcher's work below the span of the queue job: fan-out, delivery, attempt. They contain ids,
 * but never a payload, a secret, or the path and query of a URL.
 */
export interface Spans {
  fanOut(event: JobRunEvent, work: () => Promise<FanOutResult>): Promise<FanOutResult>;
  /** Runs the first step of a delivery, within the fan-out of its event. */
  deliverFirst(delivery: AttemptableDelivery, work: () => Promise<void>): Promise<void>;
  /** Runs a later step of a delivery, which has a separate queue job. */
  deliver(job: DeliveryJob, work: () => Promise<DeliverResult>): Promise<DeliverResult>;
  /** @param work called with the additional headers for the endpoint: none, unless propagation to endpoints is on */
  attempt(
    delivery: AttemptableDelivery,
    target: Target,
    work: (headers: Record<string, string>) => Promise<AttemptResult>,
  ): Promise<AttemptResult>;
  /** Returns the trace context of the delivery, for the queue job of its next attempt. */
  serializeContext(): string | null;
  /** Runs work that many deliveries share, outside of their traces. */
  runDetached<T>(work: () => T): T;
}

/** Error codes of complete responses. */
const RESPONSE_ERRORS = new Set(['unsuccessful_status', NOT_ACCEPTED]);

/** Used while no traces are exported. */
export const noSpans: Spans = {
  fanOut: (_event, work) => work(),
  deliverFirst: (_delivery, work) => work(),
  deliver: (_job, work) => work(),
  attempt: (_delivery, _target, work) => work({}),
  serializeContext: () => null,
  runDetached: (work) => work(),
};

export function createSpans(traces: Traces, { toEndpoints }: { toEndpoints: boolean }): Spans {
  return {
    fanOut: (event, work) =>
      traces.withSpan('fan-out', { attributes: eventAttributes(event) }, async (span) => {
        const result = await work();
        span.set({
          'runhook.result': result.kind,
          'runhook.deliveries': 'deliveries' in result ? result.deliveries : 0,
        });
        return result;
      }),
    deliverFirst: (delivery, work) =>
      traces.withSpan('deliver', { attributes: { 'runhook.delivery.id': delivery.id } }, work),
    deliver: (job, work) =>
      traces.withSpan('deliver', { attributes: { 'runhook.delivery.id': job.deliveryId } }, async (span) => {
        const result = await work();
        span.set({ 'runhook.result': result.kind });
        return result;
      }),
    attempt: (delivery, target, work) =>
      traces.withSpan(
        'attempt',
        { kind: 'client', attributes: { ...attemptAttributes(delivery), ...endpointAttributes(target) } },
        async (span) => {
          const result = await work(toEndpoints ? traces.headers() : {});
          const { record } = result;
          // The dispatcher's 502 and 504 are not responses of the endpoint.
          const isResponse = record.error === null || RESPONSE_ERRORS.has(record.error.code);
          if (isResponse) span.set({ 'http.response.status_code': record.httpStatusCode });
          span.set({ 'runhook.outcome': result.outcome.kind });
          if (record.error) span.fail(record.error.code);
          return result;
        },
      ),
    serializeContext: () => traces.serializeContext(),
    runDetached: (work) => traces.runDetached(work),
  };
}

function eventAttributes({ eventId, eventType, accountId }: JobRunEvent) {
  return {
    'runhook.event.id': eventId,
    'runhook.event.type': eventType,
    'runhook.account.id': accountId,
  };
}

function attemptAttributes(delivery: AttemptableDelivery) {
  const { id, subscriptionId, attemptCount } = delivery;
  return {
    'http.request.method': 'POST',
    ...(attemptCount > 0 ? { 'http.request.resend_count': attemptCount } : {}),
    'runhook.delivery.id': id,
    'runhook.subscription.id': subscriptionId,
    'runhook.attempt.number': attemptCount + 1,
    'runhook.attempt.trigger': nextTrigger(delivery),
  };
}

/** Omits path and query, which contain the secret of many endpoints. */
function endpointAttributes({ clientUrl }: Target): Record<string, string | number> {
  if (!URL.canParse(clientUrl)) return {};
  const { protocol, host, hostname, port, pathname } = new URL(clientUrl);
  const scheme = protocol.slice(0, -1);
  return {
    'url.full': `${protocol}//${host}/${pathname === '/' ? '' : 'REDACTED'}`,
    'url.scheme': scheme,
    'server.address': hostname,
    'server.port': port === '' ? (scheme === 'https' ? 443 : 80) : Number(port),
  };
}
