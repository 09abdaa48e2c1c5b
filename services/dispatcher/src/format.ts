import { createHash } from 'node:crypto';
import {
  type Format,
  formatByName,
  type Interpretation,
  interpretTargetResponse,
  type JobRunEvent,
  type Rendering,
  runEndOf,
} from '@runhook/contract';
import type { EgressResult } from '@runhook/egress';
import type { AttemptableDelivery } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { supersededReason } from './policy/job-alerts.ts';
import type { JobKey } from './record/job-alerts.ts';
import type { Target } from './target.ts';

/** Fields of a target that determine the body and the meaning of responses. */
type FormattedTarget = Pick<Target, 'format' | 'formatOptionsCiphertext'>;

/** Returns null for the payload of the contract. Throws for a format of a later release, whose attempt is made later. */
export function formatOf({ format: name }: Pick<Target, 'format'>): Format | null {
  if (name === null) return null;
  const format = formatByName(name);
  if (format === null) throw new Error(`This release does not have the format ${name}.`);
  return format;
}

export function decryptOptions(
  { secrets }: Pick<Dispatcher, 'secrets'>,
  { formatOptionsCiphertext: ciphertext }: FormattedTarget,
): Record<string, string> {
  return ciphertext === null ? {} : JSON.parse(secrets.decrypt(ciphertext));
}

/** @param options the decrypted options of the format */
export function render(
  { consoleUrl }: Pick<Dispatcher, 'consoleUrl'>,
  format: Format,
  options: Record<string, string>,
  { event, subscriptionId, webhookName }: AttemptableDelivery,
): Rendering {
  return format.render({
    event,
    subscription: { id: subscriptionId, name: webhookName },
    consoleUrl,
    options,
  });
}

/**
 * Returns the reason for cancelling the delivery instead of sending it in the current format, or null. Reads the
 * database only for a target that tracks jobs. The caller must not call it for a target without a format, so that such
 * a webhook incurs no cost.
 */
export async function reasonNotToSend(
  dispatcher: Dispatcher,
  delivery: AttemptableDelivery,
  target: Target,
): Promise<string | null> {
  const reason = reasonOfFormat(dispatcher, delivery, target);
  if (reason !== null) return reason;
  const { event, subscriptionId } = delivery;
  const report = jobReportOf(event, formatByName(target.format));
  if (report === null) return null;
  const delivered = await dispatcher.record.loadJobAlerts(jobKeyOf(event, subscriptionId, target));
  return supersededReason(event, report.state, report.runEndedAtMs, delivered);
}

/**
 * Returns the reason for which the format sends nothing for the event, whatever was sent before; else null. An unknown
 * format has none: its attempt fails, not the fan-out of the event to other webhooks.
 */
export function reasonOfFormat(
  dispatcher: Pick<Dispatcher, 'consoleUrl'>,
  delivery: AttemptableDelivery,
  { format: name }: Pick<Target, 'format'>,
): string | null {
  const format = name === null ? null : formatByName(name);
  return format === null ? null : (render(dispatcher, format, {}, delivery).nothing ?? null);
}

/** Records the state of the job that a delivered attempt has reported, if the target tracks jobs. */
export async function noteJobState(
  { record, logger }: Dispatcher,
  { event, subscriptionId }: { event: JobRunEvent; subscriptionId: string },
  target: Target,
): Promise<void> {
  const report = jobReportOf(event, formatOf(target));
  if (report === null) return;
  const { eventId, data } = event;
  try {
    const job = jobKeyOf(event, subscriptionId, target);
    await record.storeJobAlert(job, { ...report, runId: data.runId, eventId });
  } catch (err) {
    // The attempt is recorded nevertheless; without this row, a late retry of an older event is not recognised.
    logger.warn({ err, subscriptionId, eventId }, 'the state of a job at its target was not recorded');
  }
}

/** Returns the state of the job that the event reports to a target that tracks jobs; null if it reports none. */
function jobReportOf(event: JobRunEvent, format: Format | null) {
  const state = format?.jobState?.(event) ?? null;
  const end = runEndOf(event);
  return state === null || end === null ? null : { state, runEndedAtMs: Date.parse(end) };
}

/**
 * A user who corrects the URL or the options names another target, which has received nothing. So does a rotation of the
 * encryption key, after which one event may be repeated.
 */
function jobKeyOf({ data }: JobRunEvent, subscriptionId: string, target: Target): JobKey {
  const { format, clientUrl, formatOptionsCiphertext } = target;
  const identity = JSON.stringify([format, clientUrl, formatOptionsCiphertext]);
  const digest = createHash('sha256').update(identity).digest('base64url');
  return { subscriptionId, jobId: data.jobId, target: digest };
}

/** Returns the meaning of a response for the format; null without a format or a response, and if the status decides. */
export function interpretResponse(
  format: Format | null,
  { response, error }: Pick<EgressResult, 'response' | 'error'>,
  logged: { body: string } | null,
): Interpretation | null {
  if (format === null || response === null || logged === null || error !== null) return null;
  return interpretTargetResponse(format, response, logged);
}
