import { EVENT_TYPE_TABLE, type EventType, type RunStatus } from '@runhook/contract/event-types';

interface RunSample {
  /** Without a slash at its end. */
  baseUrl: string;
  accountId: number;
  jobId: string | number;
  /** Of the caller's own, so that the later calls need nothing from the first one's answer. */
  runId: number;
  eventTypes: readonly EventType[];
}

/** How a run is reported to have ended so; null when it has not. */
const FINISHES: Record<RunStatus, string | null> = {
  Running: null,
  Success: 'success',
  Errored: 'errored',
  Canceled: 'cancelled',
};

/** Shell commands that report a run as far as it takes for one of the events to be sent. */
export function runSample({ baseUrl, accountId, jobId, runId, eventTypes }: RunSample): string {
  const call = (path: string, body: object | null) =>
    [
      `curl -X POST '${baseUrl}/api/v2/accounts/${accountId}/runs/${path}' \\`,
      `  -H "Authorization: Token $RUNHOOK_TOKEN"${body === null ? '' : ' \\'}`,
      ...(body === null
        ? []
        : [`  -H 'Content-Type: application/json' \\`, `  -d '${JSON.stringify(body)}'`]),
    ].join('\n');
  const rows = eventTypes.map((eventType) => EVENT_TYPE_TABLE[eventType]);
  const atStart = rows.some(({ statuses }) => statuses.includes('Running'));
  const row = rows.find(({ afterArtifacts }) => afterArtifacts) ?? rows[0];
  const finish = row ? FINISHES[row.statuses[0]] : null;
  const started = call('', { job_id: jobId, run_id: runId, engine_version: '1.0.0' });
  const finished = call(`${runId}/finish/`, { status: finish });
  const ingested = call(`${runId}/artifacts/`, null);
  if (atStart || finish === null) return started;
  return [started, finished, ...(row?.afterArtifacts ? [ingested] : [])].join('\n');
}
