// Needs nothing of Node.js and no other file, so that the console reads it too.

/**
 * What every event tells of its run, in the order of the body's keys (docs/contract.md#events), and what kind of value
 * each is: `id` is digits in a string, `time` is ISO 8601 UTC with seconds precision and `Z`.
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

/** The times that an event may carry beside `runStartedAt`, and where a run of the runs API has them. */
export const RUN_TIMES = {
  runFinishedAt: { runField: 'finished_at', description: 'When the run finished.' },
  runErroredAt: { runField: 'errored_at', description: 'When the run failed.' },
} as const;

export type RunTime = keyof typeof RUN_TIMES;

export interface EventTypeRow {
  /**
   * The event is sent when its run comes to one of these. What an event tells is a run in the status that it names, or
   * in the first of these when it names none of them.
   */
  statuses: readonly [RunStatus, ...RunStatus[]];
  /** Whether it waits until the run's artifacts are ingested, and so tells that they are. */
  afterArtifacts: boolean;
  /** What its data carries beside {@link RUN_FIELDS}, as the last key. */
  time: RunTime | null;
  /** Its name for people. */
  label: string;
  /** When it is sent, for people who choose. */
  fires: string;
  /** What else the reference says to people who write a receiver. */
  remark: string;
  /** How a run looks that a sample of the event tells of. */
  sample: { status: RunStatus; message: string };
}

/**
 * The event types (docs/contract.md#events). Whatever depends on the type of an event reads it here: the schema and its
 * quick check, the keys of the body, the life of a run, the runs that are recorded from events, OpenAPI and the console.
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

/** What an event of the type tells of its run. */
export type EventData<Type extends EventType> = RunDetails & {
  [Time in Extract<(typeof ROWS)[Type]['time'], string>]: string;
};
