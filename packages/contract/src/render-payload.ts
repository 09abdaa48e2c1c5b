import type { JobRunEvent } from './events.ts';

/**
 * The exact text of a delivery's body: keys in the order of the spec's tables (section 2.3), no white space. What
 * is rendered once is signed and sent as it is; the same event and subscription always give the same bytes.
 */
export function renderPayload(event: JobRunEvent, subscription: { id: string; name: string }): string {
  return JSON.stringify({
    accountId: event.accountId,
    webhooksID: subscription.id,
    eventId: event.eventId,
    timestamp: event.timestamp,
    eventType: event.eventType,
    webhookName: subscription.name,
    data: orderedData(event),
  });
}

/** `data` with its keys in the order of the spec, and nothing that the event's type does not carry. */
export function orderedData(event: Pick<JobRunEvent, 'eventType' | 'data'>): Record<string, string | number> {
  const { data } = event as JobRunEvent;
  const ordered: Record<string, string | number> = {
    jobId: data.jobId,
    jobName: data.jobName,
    runId: data.runId,
    environmentId: data.environmentId,
    environmentName: data.environmentName,
    engineVersion: data.engineVersion,
    projectName: data.projectName,
    projectId: data.projectId,
    runStatus: data.runStatus,
    runStatusCode: data.runStatusCode,
    runStatusMessage: data.runStatusMessage,
    runReason: data.runReason,
    runStartedAt: data.runStartedAt,
  };
  if (event.eventType === 'job.run.completed' && 'runFinishedAt' in data) {
    ordered.runFinishedAt = data.runFinishedAt;
  }
  if (event.eventType === 'job.run.errored' && 'runErroredAt' in data) {
    ordered.runErroredAt = data.runErroredAt;
  }
  return ordered;
}
