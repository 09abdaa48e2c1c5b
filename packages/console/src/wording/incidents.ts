import type { Incident, Rates } from '../api/types.ts';

/** Count at which the API stops counting the deliveries of an incident. */
const COUNT_MAX = 5_000;
/** Maximum number of an incident's newest deliveries that the API examines for causes. */
const SAMPLE_MAX = 100;

function formatCount(count: number): string {
  return count >= COUNT_MAX ? `more than ${(COUNT_MAX - 1).toLocaleString()}` : count.toLocaleString();
}

function formatNoun(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

type Counts = Pick<Incident, 'delivery_count' | 'failed_count' | 'pending_count' | 'run_count'>;

/** "126 deliveries of 118 runs: 120 have failed, 6 are being retried." */
export function describeImpact({ delivery_count, failed_count, pending_count, run_count }: Counts): string {
  if (delivery_count === 0) return 'The log no longer contains its deliveries.';
  const parts = [
    failed_count > 0 ? `${formatCount(failed_count)} ${failed_count === 1 ? 'has' : 'have'} failed` : '',
    pending_count > 0
      ? `${formatCount(pending_count)} ${pending_count === 1 ? 'is' : 'are'} being retried`
      : '',
  ].filter((part) => part !== '');
  const total = `${formatNoun(delivery_count, 'delivery', 'deliveries')} of ${formatNoun(run_count, 'run', 'runs')}`;
  return `${total}: ${parts.length === 0 ? 'all have been delivered since' : parts.join(', ')}.`;
}

/** "3 open incidents" */
export function formatOpenCount(count: number): string {
  return formatNoun(count, 'open incident', 'open incidents');
}

/** "14 more failing webhooks" */
export function formatMoreFailing(count: number): string {
  return formatNoun(count, 'more failing webhook', 'more failing webhooks');
}

/** Returns the title of an incident: its main cause. */
export function causeTitle({ causes }: Pick<Incident, 'causes'>): string {
  return causes[0]?.title ?? 'Unknown cause';
}

/** Lists the other causes; empty if there are none. */
export function describeOtherCauses({ causes }: Pick<Incident, 'causes'>): string {
  const [, ...others] = causes;
  if (others.length === 0) return '';
  const all = causes.reduce((sum, { delivery_count }) => sum + delivery_count, 0);
  const sampleText = all >= SAMPLE_MAX ? ` of the newest ${SAMPLE_MAX}` : '';
  const causeTexts = others.map(({ title, delivery_count }) => `${title} (${delivery_count}${sampleText})`);
  return `Also: ${causeTexts.join('; ')}.`;
}

type AnnouncedIncident = Pick<Incident, 'subscription_name' | 'causes'>;

/** Returns the announcement for screen readers; empty if there are no incidents. */
export function createAnnouncement(
  open: readonly AnnouncedIncident[],
  ended: readonly AnnouncedIncident[],
): string {
  const failing = open.map(
    (incident) => `${incident.subscription_name} is failing: ${causeTitle(incident)}.`,
  );
  return [
    ...failing,
    ...ended.map(({ subscription_name }) => `Incident of ${subscription_name} closed.`),
  ].join(' ');
}

/** "Resend these 126" */
export function formatResendLabel({ failed_count }: Pick<Incident, 'failed_count'>): string {
  if (failed_count >= COUNT_MAX) return 'Resend all that failed';
  return failed_count === 1 ? 'Resend this one' : `Resend these ${failed_count.toLocaleString()}`;
}

/** "1,204, 2.4 % failed" */
export function formatFailureRate({
  delivery_count,
  failed_count,
}: Pick<Rates, 'delivery_count' | 'failed_count'>): string {
  if (delivery_count === 0) return 'no deliveries';
  const count = delivery_count.toLocaleString();
  if (failed_count === 0) return `${count}, none failed`;
  const percent = (failed_count / delivery_count) * 100;
  const digits = percent < 10 ? 1 : 0;
  // 9,999 of 10,000 must not be rounded to 100 %.
  const rounded = failed_count < delivery_count ? Math.min(percent, 99) : percent;
  const percentText = rounded < 0.1 ? 'under 0.1' : rounded.toFixed(digits).replace(/\.0$/, '');
  return `${count}, ${percentText} % failed`;
}
