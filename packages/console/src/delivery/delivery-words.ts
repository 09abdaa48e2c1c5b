import type { Delivery, DeliveryStatus } from '../api/types.ts';
import { statusWords, type Tone } from '../words/http-status.ts';
import { durationWords } from '../words/time.ts';

export const DELIVERY_STATUS_WORDS: Readonly<Record<DeliveryStatus, string>> = {
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

/** A pending one is either on its way for the first time or waits after a failure. */
export function deliveryWords({ status, attempt_count }: Pick<Delivery, 'status' | 'attempt_count'>): string {
  if (status === 'pending' && attempt_count > 0) return 'Trying again';
  return DELIVERY_STATUS_WORDS[status];
}

/** What the endpoint answered last. */
export function lastAnswerWords({
  attempt_count,
  http_status_code,
}: Pick<Delivery, 'attempt_count' | 'http_status_code'>): string {
  return attempt_count === 0 ? 'nothing sent yet' : statusWords(http_status_code);
}

export function attemptsWords(count: number): string {
  return count === 1 ? '1 attempt' : `${count} attempts`;
}

/** A job whose event is gone from the log has its number left. */
export function jobWords({ job_id, job_name }: Pick<Delivery, 'job_id' | 'job_name'>): string {
  return job_name === '' ? `Job ${job_id}` : job_name;
}

export function durationOf({ duration_ms }: Pick<Delivery, 'duration_ms'>): string {
  return duration_ms === null ? '–' : durationWords(duration_ms);
}

/** How it came to be so: for what is over, the reason that the service gives. */
export function stateSentence({
  status,
  reason,
  attempt_count,
}: Pick<Delivery, 'status' | 'reason' | 'attempt_count'>): string {
  switch (status) {
    case 'delivered':
      return attempt_count === 1
        ? 'Delivered with the first attempt.'
        : `Delivered after ${attemptsWords(attempt_count)}.`;
    case 'failed':
      return reason ?? `Failed after ${attemptsWords(attempt_count)}.`;
    case 'cancelled':
      return `Cancelled before it could be delivered. ${reason ?? ''}`.trim();
    case 'pending':
      return attempt_count === 0 ? 'On its way.' : `${attemptsWords(attempt_count)} failed so far.`;
  }
}
