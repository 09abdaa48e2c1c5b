import type { EventType } from '@runhook/contract';

interface RunSample {
  /** Without a slash at its end. */
  baseUrl: string;
  accountId: number;
  jobId: string | number;
  /** Of the caller's own, so that the later calls need nothing from the first one's answer. */
  runId: number;
  eventTypes: readonly EventType[];
}

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
  const isErrored = !eventTypes.includes('job.run.completed');
  const started = call('', { job_id: jobId, run_id: runId, engine_version: '1.0.0' });
  const finished = call(`${runId}/finish/`, { status: isErrored ? 'errored' : 'success' });
  const ingested = call(`${runId}/artifacts/`, null);
  if (eventTypes.includes('job.run.started')) return started;
  return [started, finished, ...(isErrored ? [] : [ingested])].join('\n');
}
