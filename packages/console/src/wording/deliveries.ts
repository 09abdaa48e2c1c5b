import { type FailedAttempt, findCause } from '@runhook/contract/causes';
import type { Attempt, Delivery, DeliveryStatus, EndpointTest } from '../api/types.ts';
import { formatStatus, type Tone } from './http-status.ts';
import { formatDuration, parseTime } from './time.ts';

export const DELIVERY_STATUS_LABELS: Readonly<Record<DeliveryStatus, string>> = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

const TONES: Readonly<Record<DeliveryStatus, Tone>> = {
  pending: 'waiting',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'neutral',
};

export function deliveryTone({ status }: Pick<Delivery, 'status'>): Tone {
  return TONES[status];
}

/** Returns the label of a status: that of a pending delivery depends on whether it has been attempted. */
export function formatDeliveryStatus({
  status,
  attempt_count,
}: Pick<Delivery, 'status' | 'attempt_count'>): string {
  if (status === 'pending' && attempt_count > 0) return 'Retrying';
  return DELIVERY_STATUS_LABELS[status];
}

/** Describes the result of the latest attempt. */
export function formatLastResponse({
  attempt_count,
  http_status_code,
  error_code,
  waiting_for,
}: Pick<Delivery, 'attempt_count' | 'http_status_code' | 'error_code' | 'waiting_for'>): string {
  if (attempt_count > 0) return formatStatus(http_status_code, error_code);
  return waiting_for === undefined ? 'not sent yet' : formatWaitingFor(waiting_for);
}

/** "waiting for job.run.started", "waiting for its rate limit": waits that the webhook asks for, and no problem. */
function formatWaitingFor(waitingFor: NonNullable<Delivery['waiting_for']>): string {
  return waitingFor.kind === 'order' ? `waiting for ${waitingFor.event_type}` : 'waiting for its rate limit';
}

function formatAttemptCount(count: number): string {
  return count === 1 ? '1 attempt' : `${count} attempts`;
}

/** "214 ms, 2 attempts"; without the duration if the latest attempt has none. */
export function formatDurationAndAttempts(delivery: Pick<Delivery, 'duration_ms' | 'attempt_count'>): string {
  const attempts = formatAttemptCount(delivery.attempt_count);
  return delivery.duration_ms === null ? attempts : `${formatDeliveryDuration(delivery)}, ${attempts}`;
}

/** Returns the name of the job, or its id if the event has been removed from the log. */
export function formatJob({ job_id, job_name }: Pick<Delivery, 'job_id' | 'job_name'>): string {
  return job_name === '' ? `Job ${job_id}` : job_name;
}

export function formatDeliveryDuration({ duration_ms }: Pick<Delivery, 'duration_ms'>): string {
  return duration_ms === null ? '–' : formatDuration(duration_ms);
}

/** Explains the state of a delivery; a failed or cancelled one with the reason from the API. */
export function describeState({
  status,
  reason,
  attempt_count,
  next_attempt_at,
  waiting_for,
}: Pick<Delivery, 'status' | 'reason' | 'attempt_count' | 'next_attempt_at' | 'waiting_for'>): string {
  switch (status) {
    case 'delivered':
      return attempt_count === 1
        ? 'Delivered on the first attempt.'
        : `Delivered after ${formatAttemptCount(attempt_count)}.`;
    case 'failed':
      return reason ?? `Failed after ${formatAttemptCount(attempt_count)}.`;
    case 'cancelled':
      return `Cancelled before it could be delivered. ${reason ?? ''}`.trim();
    case 'pending': {
      const soFar =
        attempt_count === 0 ? 'Not sent yet.' : `${formatAttemptCount(attempt_count)} failed so far.`;
      if (waiting_for !== undefined) return `${soFar} It is ${formatWaitingFor(waiting_for)}.`;
      // See docs/contract.md#lanes and #retry-after.
      return next_attempt_at === null
        ? `${soFar} Waiting for earlier deliveries of this webhook, or for the pause that its endpoint requested.`
        : soFar;
    }
  }
}

const SECOND_MS = 1_000;
const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3_600;

/** "Attempt 2 in 24 s", "Attempt 2 in 3 min 5 s", "Attempt 1 due now" */
export function formatNextAttempt(at: string, attemptCount: number, nowMs: number): string {
  const name = `Attempt ${attemptCount + 1}`;
  const date = parseTime(at);
  if (date === null) return name;
  const seconds = Math.ceil((date.getTime() - nowMs) / SECOND_MS);
  return seconds <= 0 ? `${name} due now` : `${name} in ${formatCountdown(seconds)}`;
}

function formatCountdown(seconds: number): string {
  if (seconds < MINUTE_SECONDS) return `${seconds} s`;
  if (seconds < HOUR_SECONDS)
    return `${Math.floor(seconds / MINUTE_SECONDS)} min ${seconds % MINUTE_SECONDS} s`;
  return `${Math.floor(seconds / HOUR_SECONDS)} h ${Math.floor((seconds % HOUR_SECONDS) / MINUTE_SECONDS)} min`;
}

/** Details of a failed attempt in addition to its codes. */
type AttemptDetails = Pick<FailedAttempt, 'errorMessage' | 'responseHeaders' | 'responseBody'>;

const NO_DETAILS: AttemptDetails = { errorMessage: null, responseHeaders: null, responseBody: null };

/** Returns what to check after a failed attempt; null if it succeeded. */
export function failureAdvice(
  statusCode: string,
  errorCode: string | null,
  details: AttemptDetails = NO_DETAILS,
): string | null {
  if (/^2\d\d$/.test(statusCode) && errorCode === null) return null;
  return findCause({ httpStatusCode: Number(statusCode), errorCode, ...details }).advice;
}

interface VerificationText {
  isGood: boolean;
  title: string;
  /** Advice on what to check; null if the test succeeded. */
  advice: string | null;
}

/** Describes the result of a test. Without a response, the message of the service is more specific than the status. */
export function describeVerification({
  verification_error,
  verification_status_code: status,
  verification_error_code: errorCode = null,
  exchange,
}: EndpointTest): VerificationText {
  const isGood = verification_error === null;
  const hasResponse = isGood || errorCode === 'unsuccessful_status';
  return {
    isGood,
    title: hasResponse
      ? `Your endpoint returned ${formatStatus(status, errorCode)}`
      : trimFullStop(verification_error),
    advice: isGood ? null : failureAdvice(status, errorCode, exchange && toAttemptDetails(exchange)),
  };
}

/** Returns the details of a failed exchange. */
export function toAttemptDetails(
  exchange: Pick<Attempt, 'error' | 'response_headers' | 'response_body'>,
): AttemptDetails {
  const { error, response_headers, response_body } = exchange;
  return {
    errorMessage: error?.message ?? null,
    responseHeaders: response_headers,
    responseBody: response_body,
  };
}

function trimFullStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

/** Returns the phases that took place, in order, and the total. */
export function listPhases(timings: NonNullable<Attempt['timings']>): { name: string; ms: number }[] {
  const { dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms } = timings;
  const phases = [
    { name: 'DNS', ms: dns_ms },
    { name: 'Connect', ms: connect_ms },
    { name: 'TLS', ms: tls_ms },
    { name: 'Waiting for response', ms: first_byte_ms },
    { name: 'Total', ms: total_ms },
  ];
  return phases.flatMap(({ name, ms }) => (ms === null ? [] : [{ name, ms }]));
}
