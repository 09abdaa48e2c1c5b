import type { JobRunEvent } from '@runhook/contract';

/** What the events of one run tell of it, for the table of runs. */
export interface RunOfEvents {
  accountId: number;
  id: string;
  jobId: string;
  jobName: string;
  projectId: string;
  projectName: string;
  environmentId: string;
  environmentName: string;
  engineVersion: string;
  status: 'Running' | 'Success' | 'Errored';
  statusMessage: string | null;
  reason: string | null;
  startedAt: string;
  finishedAt: string | null;
  erroredAt: string | null;
  artifactsIngestedAt: string | null;
}

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
    status: statusOf(event),
    statusMessage: givenText(data.runStatusMessage),
    reason: givenText(data.runReason),
    startedAt: data.runStartedAt,
    finishedAt: event.eventType === 'job.run.completed' ? event.data.runFinishedAt : null,
    erroredAt: event.eventType === 'job.run.errored' ? event.data.runErroredAt : null,
    artifactsIngestedAt:
      event.eventType === 'job.run.completed' ? event.timestamp.replace(/\.\d+Z$/, 'Z') : null,
  };
}

function statusOf(event: JobRunEvent): RunOfEvents['status'] {
  if (event.eventType === 'job.run.started') return 'Running';
  return event.eventType === 'job.run.errored' || event.data.runStatus === 'Errored' ? 'Errored' : 'Success';
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

/** "None" is how payloads say that there is none (spec, section 2.3). */
function givenText(text: string): string | null {
  return text === '' || text === 'None' ? null : columnText(text);
}
