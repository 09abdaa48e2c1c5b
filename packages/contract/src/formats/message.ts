import type { RunStatus } from '../event-types.ts';
import type { JobRunEvent } from '../events.ts';
import { notifiedStatus, runEndOf } from '../reported-status.ts';
import { wellFormedText } from '../text.ts';
import { onLines, onOneLine } from './escape.ts';
import type { FormatInput } from './format.ts';

/**
 * Statements of the messages of all targets. Texts are well-formed, names are on one line, and both are without characters
 * that change the text around them. They are neither escaped nor truncated.
 */
export interface Message {
  jobName: string;
  environmentName: string;
  projectName: string;
  runId: string;
  status: RunStatus;
  /** The outcome as the end of a sentence that begins with the job's name, such as "failed". */
  outcome: string;
  /** Time from the start to the end of the run, such as "1 min 34 s"; null if it has not ended. */
  duration: string | null;
  /** The run's status message; null if it has none. */
  statusMessage: string | null;
  reason: string;
  webhookName: string;
  /** Page of the run in the console; null without the console's address. */
  runUrl: string | null;
}

const OUTCOMES: Readonly<Record<RunStatus, string>> = {
  Running: 'started',
  Success: 'succeeded',
  Errored: 'failed',
  Canceled: 'was cancelled',
};

export function messageOf({ event, subscription, consoleUrl }: FormatInput): Message {
  const { data } = event;
  const status = notifiedStatus(event);
  const statusMessage = cleanText(data.runStatusMessage);
  return {
    jobName: orUnnamed(data.jobName, `Job ${data.jobId}`),
    environmentName: orUnnamed(data.environmentName, data.environmentId),
    projectName: orUnnamed(data.projectName, data.projectId),
    runId: data.runId,
    status,
    outcome: isSecondReport(event) ? `${OUTCOMES[status]}, its artifacts are available` : OUTCOMES[status],
    duration: durationOf(event),
    statusMessage: statusMessage === '' || statusMessage === 'None' ? null : statusMessage,
    reason: cleanText(data.runReason),
    webhookName: cleanName(subscription.name),
    runUrl: runUrlOf(event, consoleUrl),
  };
}

function cleanName(name: string): string {
  return onOneLine(wellFormedText(name)).trim();
}

function cleanText(text: string): string {
  return onLines(wellFormedText(text)).trim();
}

/** Targets reject empty texts, and a name may consist of characters that are removed. */
function orUnnamed(name: string, substitute: string): string {
  const cleaned = cleanName(name);
  return cleaned === '' ? substitute : cleaned;
}

/** Whether another event has already reported the same status of the run. */
function isSecondReport(event: JobRunEvent): boolean {
  return event.eventType === 'job.run.completed' && notifiedStatus(event) === 'Errored';
}

export function runUrlOf({ accountId, data }: JobRunEvent, consoleUrl: string | null): string | null {
  if (consoleUrl === null) return null;
  return `${consoleUrl.replace(/\/+$/, '')}/accounts/${accountId}/runs/${data.runId}/`;
}

function durationOf(event: JobRunEvent): string | null {
  const end = runEndOf(event);
  const seconds = end === null ? Number.NaN : (Date.parse(end) - Date.parse(event.data.runStartedAt)) / 1000;
  return seconds >= 0 ? formatDuration(Math.floor(seconds)) : null;
}

function formatDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
