import type { WebhookValues } from './webhook-values.ts';

const RUN_STATUS_NAMES: Readonly<Record<string, string>> = {
  '3': 'running',
  '10': 'succeeded',
  '20': 'errored',
};

/** Lists the options that are set, without their values if these are long: "2 jobs, errored runs, in order"; empty if none is. */
export function summarizeOptions(values: WebhookValues): string {
  const { runStatuses, rateLimit, signatureHeader } = values;
  const statuses = runStatuses.map((code) => RUN_STATUS_NAMES[code] ?? code).join(' or ');
  return [
    values.description.trim() !== '' && 'description',
    formatCount(values.jobIds.length, 'job', 'jobs'),
    runStatuses.length > 0 && `${statuses} runs`,
    formatCount(values.environmentIds.length, 'environment', 'environments'),
    formatCount(values.projectIds.length, 'project', 'projects'),
    values.ordered && 'in order',
    rateLimit !== '' && `at most ${rateLimit} per second`,
    values.deactivateOn410 && 'off after 410 Gone',
    signatureHeader.trim() !== '' && `signature in ${signatureHeader.trim()}`,
    formatCount(values.headers.length, 'custom header', 'custom headers'),
    values.signatureKey && 'key pair',
    formatCount(values.labels.length, 'label', 'labels'),
    values.isFeedOnly && 'feed only',
    !values.active && 'off',
  ]
    .filter((part) => part !== false)
    .join(', ');
}

function formatCount(count: number, one: string, many: string): string | false {
  return count > 0 && `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
