import {
  attemptsLeft,
  deliveryHeaders,
  maskHeaders,
  renderPayload,
  secretsAt,
  toLoggedResponse,
} from '@runhook/contract';
import { isPermanentRejection, isStoredEventData } from '@runhook/database';
import { isBlocked } from '@runhook/egress';
import type { Dispatcher } from './dispatcher.ts';
import { decryptOptions, formatOf, interpretResponse, noteJobState, render } from './format.ts';
import { deactivateIfGone } from './gone.ts';
import { type Delivery, isLaneOnly, nextTrigger } from './policy/next-step.ts';
import type { Lane, LaneOutcome } from './policy/origins.ts';
import {
  decideOutcome,
  type Outcome,
  retryAfterMs,
  toAttemptReport,
  toInterpretedReport,
} from './policy/outcome.ts';
import type { Slot } from './policy/subscription-limiter.ts';
import type { AttemptRecord } from './record/attempts.ts';
import type { DeliveryKey } from './record/deliveries.ts';
import type { Target } from './target.ts';
import { measureAttempt, measureFirstAttempt } from './telemetry/measure-attempt.ts';

/** Fields of a delivery that an attempt needs. */
export type AttemptableDelivery = Pick<
  Delivery,
  'id' | 'day' | 'trigger' | 'cycle' | 'attemptCount' | 'webhookName' | 'subscriptionId' | 'event'
>;

export function deliveryKeyOf({ id, event }: AttemptableDelivery): DeliveryKey {
  return { deliveryId: id, accountId: event.accountId };
}

export function laneOf(
  { clock }: Dispatcher,
  { subscriptionId, event }: AttemptableDelivery,
  target: Target,
): Lane {
  const blockedMs = Math.max(0, target.blockedUntilMs - clock.nowMs());
  return { subscriptionId, accountId: event.accountId, origin: target.endpoint, blockedMs };
}

export interface AttemptResult {
  record: AttemptRecord;
  outcome: Outcome;
  /** Milliseconds for which the response asks for no further requests; null if it does not ask. */
  retryAfterMs: number | null;
  /** Whether reading the response cost several times as much as an ordinary one. */
  costly: boolean;
}

/**
 * Sends one signed request and interprets the response. The body is rendered from data that is fixed at fan-out, so
 * every attempt in the same format sends the same bytes; URL, secret and format are those of the current subscription. Records a `Retry-After`,
 * but not the attempt. Always releases the slot.
 */
export async function attempt(
  dispatcher: Dispatcher,
  slot: Slot,
  delivery: AttemptableDelivery,
  target: Target,
): Promise<AttemptResult> {
  const { spans, limits, requests } = dispatcher;
  let outcome: LaneOutcome = 'failed';
  try {
    const result = await spans.attempt(delivery, target, (traceHeaders) =>
      send(dispatcher, delivery, target, traceHeaders),
    );
    outcome = toLaneOutcome(result);
    await changeBlock(dispatcher, slot, target, result);
    // Also after a costly success, which counts as failed for the limiter.
    if (target.format !== null && result.outcome.kind === 'delivered')
      await noteJobState(dispatcher, delivery, target);
    return result;
  } finally {
    limits.release(slot, outcome);
    requests.noteRelease(delivery.subscriptionId);
  }
}

/** Records a `Retry-After` before the slot is released for another attempt. A success during a block ends it. */
async function changeBlock(
  { record, limits, logger }: Dispatcher,
  slot: Slot,
  { clientUrl }: Target,
  { outcome, retryAfterMs: forMs }: AttemptResult,
): Promise<void> {
  const { subscriptionId, blockedMs } = slot.lane;
  const newBlockMs = outcome.kind === 'delivered' ? 0 : forMs;
  if (newBlockMs === null || (newBlockMs === 0 && blockedMs === 0)) return;
  limits.beginBlockChange(slot, newBlockMs);
  try {
    await record.changeBlock({ subscriptionId, clientUrl, forMs: newBlockMs });
  } catch (err) {
    // The result of the attempt is recorded even if the block is not; the next response with `Retry-After` sets the
    // block again.
    logger.warn({ err, subscriptionId }, 'a block by Retry-After, or its end, was not recorded');
  } finally {
    limits.endBlockChange(slot);
  }
}

const NOT_CONNECTED = new Set(['connection_refused', 'unreachable']);

/** Returns the result for the limiter. A costly success counts as failed, which limits the slots. */
function toLaneOutcome({ outcome, record, costly }: AttemptResult): LaneOutcome {
  if (costly) return 'failed';
  if (outcome.kind === 'delivered') return 'succeeded';
  const code = record.error?.code ?? '';
  // All blocked targets get the same share, which would otherwise show the subscriber which rule blocked a request.
  return NOT_CONNECTED.has(code) || isBlocked(code) ? 'not_connected' : 'failed';
}

async function send(
  dispatcher: Dispatcher,
  delivery: AttemptableDelivery,
  target: Target,
  traceHeaders: Record<string, string>,
): Promise<AttemptResult> {
  const { egress, secrets, retryPolicy, metrics, clock, consoleUrl } = dispatcher;
  const { event } = delivery;
  // A row of an old release that `migrate` could not rewrite has data that cannot be rendered.
  if (!isStoredEventData(event.data))
    throw new TypeError(`the data of event ${event.eventId} cannot be read`);
  const format = formatOf(target);
  const options = format === null ? {} : decryptOptions({ secrets }, target);
  const { body, contentType } =
    format === null ? renderContract(delivery) : renderMessage({ consoleUrl }, format, options, delivery);
  const sentAt = new Date(clock.nowMs());
  const hmacSecrets = secretsAt(target.secret, sentAt.getTime(), secrets.decrypt);
  const customHeaders: Record<string, string> =
    target.headersCiphertext === null ? {} : JSON.parse(secrets.decrypt(target.headersCiphertext));
  const headers = deliveryHeaders({
    body,
    eventId: delivery.event.eventId,
    hmacSecrets,
    privateKeys: target.signatureKey && secretsAt(target.signatureKey, sentAt.getTime(), secrets.decrypt),
    sentAt,
    signatureHeader: target.signatureHeader,
    ...(format !== null && { formatSignatureHeader: format.signatureHeader, contentType }),
    customHeaders,
  });
  Object.assign(headers, traceHeaders);
  metrics.inFlight.attempts += 1;
  const result = await egress.post({ accountId: event.accountId, url: target.clientUrl, headers, body });
  metrics.inFlight.attempts -= 1;
  const response =
    result.response && toLoggedResponse(result.response, { headers, customHeaders, hmacSecrets, options });
  const interpretation = await deactivateIfGone(
    dispatcher,
    delivery.subscriptionId,
    target,
    result,
    interpretResponse(format, result, response),
  );
  const byStatus = toAttemptReport(result);
  const report = interpretation === null ? byStatus : toInterpretedReport(byStatus, interpretation);
  const number = delivery.attemptCount + 1;
  // Waits that the subscriber has chosen, for an order or a rate limit, are no sign of a slow service.
  if (number === 1 && !isLaneOnly(target)) measureFirstAttempt(metrics, event, sentAt);
  const progress = { cycle: delivery.cycle, attemptCount: number };
  const outcome = decideOutcome(report, progress, retryPolicy, Math.random(), interpretation);
  return {
    outcome,
    retryAfterMs: retryAfterMs(report.httpStatusCode, result.response?.headers ?? {}, clock.nowMs()),
    costly: result.costly,
    record: {
      deliveryId: delivery.id,
      accountId: delivery.event.accountId,
      day: delivery.day,
      number,
      trigger: nextTrigger(delivery),
      startedAt: sentAt,
      durationMs: result.durationMs,
      ...report,
      requestHeaders: maskHeaders(headers),
      response,
      timings: result.timings,
      ...(format !== null && { format: format.name }),
      status: outcome.kind === 'retry' ? 'pending' : outcome.kind,
      reason: outcome.kind === 'failed' ? outcome.reason : null,
      nextDelayMs: outcome.kind === 'retry' ? outcome.delayMs : null,
    },
  };
}

function renderContract({ event, subscriptionId, webhookName }: AttemptableDelivery) {
  const body = renderPayload(event, { id: subscriptionId, name: webhookName });
  return { body, contentType: 'application/json' };
}

function renderMessage(...[dispatcher, format, options, delivery]: Parameters<typeof render>) {
  const rendering = render(dispatcher, format, options, delivery);
  // Callers cancel such a delivery before its attempt.
  if (rendering.nothing !== undefined) throw new TypeError(rendering.nothing);
  return rendering;
}

/** Records an attempt of a delivery without a queue job, and queues the next attempt if one follows. */
export async function logAndSchedule(
  dispatcher: Dispatcher,
  delivery: AttemptableDelivery,
  { record, outcome }: AttemptResult,
): Promise<void> {
  const { queue, retryPolicy } = dispatcher;
  const isRecorded = await logAttempt(dispatcher, delivery, record);
  if (!isRecorded || outcome.kind !== 'retry') return;
  const { id: deliveryId, cycle, event } = delivery;
  const left = attemptsLeft(retryPolicy, { cycle, attemptCount: record.number });
  await queue.enqueue({
    deliveryId,
    cycle,
    accountId: event.accountId,
    delayMs: outcome.delayMs,
    attemptsLeft: left,
  });
}

/**
 * Records an attempt, and reports it once it is committed. Returns false if the record rejects it for its data: its
 * delivery is then set aside, since another attempt would send the request again.
 */
export async function logAttempt(
  dispatcher: Dispatcher,
  delivery: AttemptableDelivery,
  attemptRecord: AttemptRecord,
): Promise<boolean> {
  try {
    await dispatcher.record.commits.recordAttempt(attemptRecord);
  } catch (error) {
    if (!isPermanentRejection(error)) throw error;
    await dispatcher.quarantine.setAsideDelivery(deliveryKeyOf(delivery), error);
    return false;
  }
  reportAttempt(dispatcher, delivery, attemptRecord);
  return true;
}

/** Reports a committed attempt in the subscription's status, in metrics, and in one log line. */
export function reportAttempt(
  { record, metrics, logger }: Dispatcher,
  delivery: AttemptableDelivery,
  attemptRecord: AttemptRecord,
): void {
  const { startedAt, httpStatusCode } = attemptRecord;
  const hasSucceeded = attemptRecord.status === 'delivered';
  record.noteStatus({
    subscriptionId: delivery.subscriptionId,
    dispatchedAt: startedAt,
    httpStatusCode,
    errorCode: attemptRecord.error?.code ?? null,
    succeededAt: hasSucceeded ? startedAt : null,
    failures: hasSucceeded ? 0 : 1,
    failedSince: hasSucceeded ? null : startedAt,
  });
  measureAttempt(metrics, attemptRecord);
  logger.info(
    {
      deliveryId: attemptRecord.deliveryId,
      eventId: delivery.event.eventId,
      eventType: delivery.event.eventType,
      subscriptionId: delivery.subscriptionId,
      accountId: delivery.event.accountId,
      attempt: attemptRecord.number,
      trigger: attemptRecord.trigger,
      status: attemptRecord.status,
      httpStatusCode: attemptRecord.httpStatusCode,
      errorCode: attemptRecord.error?.code,
      errorDetail: attemptRecord.error?.detail,
      durationMs: attemptRecord.durationMs,
      nextDelayMs: attemptRecord.nextDelayMs ?? undefined,
    },
    'attempt',
  );
}
