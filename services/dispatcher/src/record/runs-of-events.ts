import { EVENT_TYPE_TABLE, type JobRunEvent, type RunStatus, toldStatus } from '@runhook/contract';

/** What the events of one run tell of it, for the table of runs. */
interface RunOfEvents {
  accountId: number;
  id: string;
  jobId: string;
  jobName: string;
  projectId: string;
  projectName: string;
  environmentId: string;
  environmentName: string;
  engineVersion: string;
  status: RunStatus;
  statusMessage: string | null;
  reason: string | null;
  startedAt: string;
  finishedAt: string | null;
  erroredAt: string | null;
  artifactsIngestedAt: string | null;
}

/** In the order of the statement that records them. */
export const RUN_COLUMNS = [
  'accountId',
  'id',
  'jobId',
  'jobName',
  'projectId',
  'projectName',
  'environmentId',
  'environmentName',
  'engineVersion',
  'status',
  'statusMessage',
  'reason',
  'startedAt',
  'finishedAt',
  'erroredAt',
  'artifactsIngestedAt',
] as const satisfies (keyof RunOfEvents)[];

/** Events in any order give the same run: what came later in its life wins, and a time that is known stays known. */
export function runsOfEvents(events: readonly JobRunEvent[]): RunOfEvents[] {
  const runs = new Map<string, RunOfEvents>();
  for (const event of events) {
    const key = `${event.accountId}/${event.data.runId}`;
    const seen = runs.get(key);
    runs.set(key, seen ? merged(seen, runOf(event)) : runOf(event));
  }
  // The same order everywhere, so that two dispatchers with the same runs wait for each other, not in a circle.
  return [...runs.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, run]) => run);
}

function runOf(event: JobRunEvent): RunOfEvents {
  const { data } = event;
  const { afterArtifacts } = EVENT_TYPE_TABLE[event.eventType];
  return {
    accountId: event.accountId,
    id: data.runId,
    jobId: data.jobId,
    jobName: columnText(data.jobName),
    projectId: data.projectId,
    projectName: columnText(data.projectName),
    environmentId: data.environmentId,
    environmentName: columnText(data.environmentName),
    engineVersion: columnText(data.engineVersion),
    status: toldStatus(event),
    statusMessage: givenText(data.runStatusMessage),
    reason: givenText(data.runReason),
    startedAt: data.runStartedAt,
    finishedAt: 'runFinishedAt' in data ? data.runFinishedAt : null,
    erroredAt: 'runErroredAt' in data ? data.runErroredAt : null,
    artifactsIngestedAt: afterArtifacts ? event.timestamp.replace(/\.\d+Z$/, 'Z') : null,
  };
}

function merged(a: RunOfEvents, b: RunOfEvents): RunOfEvents {
  const further = a.status === 'Running' ? b : a;
  return {
    ...further,
    finishedAt: a.finishedAt ?? b.finishedAt,
    erroredAt: a.erroredAt ?? b.erroredAt,
    artifactsIngestedAt: a.artifactsIngestedAt ?? b.artifactsIngestedAt,
  };
}

/** PostgreSQL text cannot hold NUL. */
function columnText(text: string): string {
  return text.replaceAll('\0', '\uFFFD');
}

/** "None" is how payloads say that there is none (docs/contract.md#events). */
function givenText(text: string): string | null {
  return text === '' || text === 'None' ? null : columnText(text);
}
