import { EVENT_TYPE_TABLE, EVENT_TYPES, type EventType } from '@runhook/contract/event-types';

interface EventWords {
  /** In a list: short. */
  label: string;
  /** When it fires, one line. */
  fires: string;
}

export const EVENT_WORDS: Readonly<Record<EventType, EventWords>> = EVENT_TYPE_TABLE;

export const EVENT_TYPES_IN_ORDER = EVENT_TYPES;

/** Why somebody who takes both gets two deliveries for one failed run. */
export const ERRORED_IS_PART_OF_COMPLETED =
  'Errored runs are part of completed: with both chosen, a failed run is delivered twice, first as errored, then as completed.';

/** "Run started, completed": in a list, in a run's own order. */
export function eventsWords(types: readonly EventType[]): string {
  const chosen = EVENT_TYPES_IN_ORDER.filter((type) => types.includes(type));
  return `Run ${chosen.map((type) => type.slice('job.run.'.length)).join(', ')}`;
}
