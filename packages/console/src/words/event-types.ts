import type { EventType } from '@runhook/contract';

interface EventWords {
  /** In a list: short. */
  label: string;
  /** When it fires, one line. */
  fires: string;
}

/** In the order in which a run sends them (spec, section 6). */
export const EVENT_WORDS: Readonly<Record<EventType, EventWords>> = {
  'job.run.started': {
    label: 'Run started',
    fires: 'When a run starts.',
  },
  'job.run.completed': {
    label: 'Run completed',
    fires: 'When a run finishes, failed or succeeded, once its metadata and artifacts are available.',
  },
  'job.run.errored': {
    label: 'Run errored',
    fires: 'At once when a run fails; metadata and artifacts may not be available yet.',
  },
};

export const EVENT_TYPES_IN_ORDER = Object.keys(EVENT_WORDS) as EventType[];

/** Why somebody who takes both gets two deliveries for one failed run. */
export const ERRORED_IS_PART_OF_COMPLETED =
  'Errored runs are part of completed: with both chosen, a failed run is delivered twice, first as errored, then as completed.';

/** "Run started, completed": in a list, in a run's own order. */
export function eventsWords(types: readonly EventType[]): string {
  const chosen = EVENT_TYPES_IN_ORDER.filter((type) => types.includes(type));
  return `Run ${chosen.map((type) => type.slice('job.run.'.length)).join(', ')}`;
}
