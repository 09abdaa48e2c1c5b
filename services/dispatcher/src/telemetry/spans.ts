import type { DeliveryJob, JobRunEvent } from '@runhook/contract';
import type { Traces } from '@runhook/runtime';
import type { Attemptable, AttemptResult } from '../attempt.ts';
import type { DeliverResult } from '../deliver.ts';
import type { FanOutResult } from '../fan-out.ts';
import { nextTrigger } from '../policy/next-step.ts';
import type { Target } from '../target.ts';

/**
 * What the dispatcher tells of its work as spans, below the one of the queue job: fan-out, delivery, attempt. Ids only;
 * never a payload, a secret, or what a path or a query may hide.
 */
export interface Spans {
  fanOut(event: JobRunEvent, work: () => Promise<FanOutResult>): Promise<FanOutResult>;
  /** A delivery's first step, within its event's fan-out. */
  deliverFirst(delivery: Attemptable, work: () => Promise<void>): Promise<void>;
  /** A later step, with a queue job of its own. */
  deliver(job: DeliveryJob, work: () => Promise<DeliverResult>): Promise<DeliverResult>;
  /** @param work is given the headers that go to the endpoint beside its own: none, unless that is wanted */
  attempt(
    delivery: Attemptable,
    target: Target,
    work: (headers: Record<string, string>) => Promise<AttemptResult>,
  ): Promise<AttemptResult>;
  /** The delivery's trace, for the queue job of its next attempt. */
  carried(): string | null;
  /** For work that many deliveries share. */
  detached<T>(work: () => T): T;
}

/** While no traces are exported. */
export const noSpans: Spans = {
  fanOut: (_event, work) => work(),
  deliverFirst: (_delivery, work) => work(),
  deliver: (_job, work) => work(),
  attempt: (_delivery, _target, work) => work({}),
  carried: () => null,
  detached: (work) => work(),
};

export function createSpans(traces: Traces, { toEndpoints }: { toEndpoints: boolean }): Spans {
  return {
    fanOut: (event, work) =>
      traces.within('fan-out', { attributes: eventAttributes(event) }, async (span) => {
        const result = await work();
        span.set({
          'runhook.result': result.kind,
          'runhook.deliveries': 'deliveries' in result ? result.deliveries : 0,
        });
        return result;
      }),
    deliverFirst: (delivery, work) =>
      traces.within('deliver', { attributes: { 'runhook.delivery.id': delivery.id } }, work),
    deliver: (job, work) =>
      traces.within('deliver', { attributes: { 'runhook.delivery.id': job.deliveryId } }, async (span) => {
        const result = await work();
        span.set({ 'runhook.result': result.kind });
        return result;
      }),
    attempt: (delivery, target, work) =>
      traces.within(
        'attempt',
        { kind: 'client', attributes: { ...attemptAttributes(delivery), ...endpointAttributes(target) } },
        async (span) => {
          const attempted = await work(toEndpoints ? traces.headers() : {});
          const { record } = attempted;
          // 502 and 504 of ours are no answers of the endpoint's.
          const isAnswer = record.error === null || record.error.code === 'unsuccessful_status';
          if (isAnswer) span.set({ 'http.response.status_code': record.httpStatusCode });
          span.set({ 'runhook.outcome': attempted.outcome.kind });
          if (record.error) span.fail(record.error.code);
          return attempted;
        },
      ),
    carried: () => traces.carried(),
    detached: (work) => traces.detached(work),
  };
}

function eventAttributes({ eventId, eventType, accountId }: JobRunEvent) {
  return {
    'runhook.event.id': eventId,
    'runhook.event.type': eventType,
    'runhook.account.id': accountId,
  };
}

function attemptAttributes(delivery: Attemptable) {
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

/** Many endpoints have their secret in the path or the query. */
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
