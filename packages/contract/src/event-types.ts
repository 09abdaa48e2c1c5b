// Uses no Node.js API and imports no other file, so that the console can import it.

/**
 * Run fields of every event, in the key order of the body (docs/contract.md#events), with the kind of each value: `id`
 * is digits in a string, `time` is ISO 8601 UTC with seconds precision and `Z`.
 */
export const RUN_FIELDS = {
  jobId: 'id',
  jobName: 'name',
  runId: 'id',
  environmentId: 'id',
  environmentName: 'name',
  engineVersion: 'name',
  projectName: 'name',
  projectId: 'id',
  runStatus: 'name',
  runStatusCode: 'code',
  runStatusMessage: 'message',
  runReason: 'message',
  runStartedAt: 'time',
} as const;

export type RunDetails = {
  [Field in keyof typeof RUN_FIELDS]: (typeof RUN_FIELDS)[Field] extends 'code' ? number : string;
};

/** Run statuses as payloads name them, with their codes (docs/contract.md#runs-and-jobs). */
export const RUN_STATUS_CODES = { Running: 3, Success: 10, Errored: 20, Canceled: 30 } as const;

export type RunStatus = keyof typeof RUN_STATUS_CODES;

/** The timestamps that an event may carry in addition to `runStartedAt`, and the run field of the API for each. */
export const RUN_TIMES = {
  runFinishedAt: { runField: 'finished_at', description: 'When the run finished.' },
  runErroredAt: { runField: 'errored_at', description: 'When the run failed.' },
} as const;

export type RunTime = keyof typeof RUN_TIMES;

export interface EventTypeRow {
  /**
   * The run statuses at which the event is sent. A publisher may set any `runStatus`: one that is not in this list is
   * treated as the first status of the list.
   */
  statuses: readonly [RunStatus, ...RunStatus[]];
  /** Whether the event is sent only after the run's artifacts are ingested. */
  afterArtifacts: boolean;
  /** The timestamp that `data` carries after {@link RUN_FIELDS}, as the last key. */
  time: RunTime | null;
  /** The display name. */
  label: string;
  /** Explains to users who choose event types when the event is sent. */
  fires: string;
  /** An additional remark in the reference for authors of receivers. */
  remark: string;
  /** Status and message of the run in a sample event. */
  sample: { status: RunStatus; message: string };
}

/**
 * The event types (docs/contract.md#events). All code that depends on the type of an event reads this table: the schema
 * and its fast path, the keys of the body, the life of a run, the runs that are recorded from events, OpenAPI and the
 * console.
 */
const ROWS = {
  'job.run.started': {
    statuses: ['Running'],
    afterArtifacts: false,
    time: null,
    label: 'Run started',
    fires: 'When a run starts.',
    remark: '',
    sample: { status: 'Running', message: 'None' },
  },
  'job.run.completed': {
    statuses: ['Success', 'Errored'],
    afterArtifacts: true,
    time: 'runFinishedAt',
    label: 'Run completed',
    fires: 'When a run finishes, failed or succeeded, once its metadata and artifacts are available.',
    remark: 'Use this event if you need logs or the statuses of parts, and check `runStatus`.',
    sample: { status: 'Success', message: 'None' },
  },
  'job.run.errored': {
    statuses: ['Errored'],
    afterArtifacts: false,
    time: 'runErroredAt',
    label: 'Run errored',
    fires: 'At once when a run fails; metadata and artifacts may not be available yet.',
    remark: '`job.run.completed` follows for the same run, with a different `eventId`.',
    sample: { status: 'Errored', message: 'Two models failed' },
  },
} as const satisfies Record<`job.run.${string}`, EventTypeRow>;

export type EventType = keyof typeof ROWS;

export const EVENT_TYPE_TABLE: Readonly<Record<EventType, EventTypeRow>> = ROWS;

export const EVENT_TYPES = Object.keys(ROWS) as readonly EventType[] as readonly [EventType, ...EventType[]];

export function isEventType(value: unknown): value is EventType {
  return EVENT_TYPES.includes(value as EventType);
}

/** The `data` of an event of the type. */
export type EventData<Type extends EventType> = RunDetails & {
  [Time in Extract<(typeof ROWS)[Type]['time'], string>]: string;
};
