import {
  type Format,
  formatByName,
  type Interpretation,
  interpretTargetResponse,
  type JobRunEvent,
  type Rendering,
} from '@runhook/contract';
import type { EgressResult } from '@runhook/egress';
import type { AttemptableDelivery } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { supersededReason } from './policy/job-alerts.ts';
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
  const state = formatByName(target.format)?.jobState?.(event) ?? null;
  if (state === null) return null;
  const last = await dispatcher.record.loadJobAlert({ subscriptionId, jobId: event.data.jobId });
  return supersededReason(event, state, last);
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
  const state = formatOf(target)?.jobState?.(event) ?? null;
  if (state === null) return;
  const { eventId, timestamp: eventTimestamp, data } = event;
  const { jobId, runId } = data;
  try {
    await record.storeJobAlert({ subscriptionId, jobId }, { state, runId, eventId, eventTimestamp });
  } catch (err) {
    // The attempt is recorded nevertheless; without this row, a late retry of an older event is not recognised.
    logger.warn({ err, subscriptionId, eventId }, 'the state of a job at its target was not recorded');
  }
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
