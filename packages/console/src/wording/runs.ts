import { EVENT_TYPE_TABLE } from '@runhook/contract/event-types';
import { runStatusOfCode, type StoredRunStatus } from '@runhook/contract/run-statuses';
import type { Run, RunEvent, UnnotifiedWebhook } from '../api/types.ts';
import type { Tone } from './http-status.ts';
import { formatDuration } from './time.ts';

export const RUN_STATUS_LABELS: Readonly<Record<StoredRunStatus, string>> = {
  Queued: 'Queued',
  Starting: 'Starting',
  Running: 'Running',
  Success: 'Succeeded',
  Errored: 'Errored',
  Canceled: 'Cancelled',
};

const TONES: Readonly<Record<StoredRunStatus, Tone>> = {
  Queued: 'waiting',
  Starting: 'waiting',
  Running: 'waiting',
  Success: 'good',
  Errored: 'bad',
  Canceled: 'neutral',
};

export function runLabel({ status }: Pick<Run, 'status'>): string {
  return RUN_STATUS_LABELS[runStatusOfCode(status)];
}

export function runTone({ status }: Pick<Run, 'status'>): Tone {
  return TONES[runStatusOfCode(status)];
}

/** "3 min 20 s"; null until the run or step has started and finished. */
export function formatRunDuration({
  started_at,
  finished_at,
}: {
  started_at: string | null;
  finished_at: string | null;
}): string | null {
  if (started_at === null || finished_at === null) return null;
  return formatDuration(Math.max(0, Date.parse(finished_at) - Date.parse(started_at)));
}

/** Explains the state of an event without deliveries. */
export const UNDELIVERED_TEXTS: Readonly<Record<Exclude<RunEvent['state'], 'matched'>, string>> = {
  unmatched: 'No webhook matched this event.',
  not_reported: 'The job runner has not reported this event, so it was not sent to any webhook.',
  waiting: 'This event has not been matched with webhooks yet. It is queued.',
  expired: 'The log no longer contains this event.',
};

/** Names the events that a webhook did not hear about, if it heard about others: ", of Run started"; otherwise empty. */
export function formatUnnotifiedEvents({
  events,
  notified_event_types,
}: Pick<UnnotifiedWebhook, 'events' | 'notified_event_types'>): string {
  if (notified_event_types.length === 0) return '';
  return `, about ${events.map(({ event_type }) => EVENT_TYPE_TABLE[event_type].label).join(' and ')}`;
}

export function formatWebhookCount(count: number): string {
  return count === 1 ? '1 webhook' : `${count.toLocaleString()} webhooks`;
}

/** Returns a sentence on how many events of a run webhooks matched. Events that the job runner has not reported do not count. */
export function describeMatches(runEvents: readonly Pick<RunEvent, 'state' | 'delivery_count'>[]): string {
  const events = runEvents.filter(({ state }) => state !== 'not_reported');
  const matched = events.filter(({ state }) => state === 'matched');
  const deliveries = matched.reduce((sum, { delivery_count }) => sum + delivery_count, 0);
  const hasWaiting = events.some(({ state }) => state === 'waiting');
  if (matched.length === 0 && hasWaiting)
    return 'No webhook has been notified of this run yet: its events are queued.';
  if (matched.length === 0 && events.some(({ state }) => state === 'expired'))
    return 'The log no longer contains the events of this run.';
  if (events.length === 0) return 'No event of this run has been reported.';
  if (matched.length === 0) return 'No webhook was notified of this run: none matched its events.';
  const matchedOfAll = `${matched.length} of its ${events.length} events`;
  const eventsText =
    events.length === 1
      ? 'its event'
      : matched.length === events.length
        ? 'each of its events'
        : matchedOfAll;
  const noun = deliveries === 1 ? '1 delivery' : `${deliveries.toLocaleString()} deliveries`;
  return `Webhooks matched ${eventsText}: ${noun} in all.`;
}
