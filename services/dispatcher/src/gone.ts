import type { Interpretation } from '@runhook/contract';
import type { EgressResult } from '@runhook/egress';
import type { Dispatcher } from './dispatcher.ts';
import type { Target } from './target.ts';

const GONE_STATUS = 410;
const GONE: Interpretation = { result: 'failed_and_off', message: 'The endpoint responded with 410 (Gone).' };

/**
 * Deactivates the subscription if the response is a 410 and it wants that, or if the format interprets the response so.
 * Returns the meaning of the response: it is retried, as without `failed_and_off`, if the subscription was changed since
 * it was read for the attempt, because the delivery may then succeed at another address.
 */
export async function deactivateIfGone(
  { record, logger }: Pick<Dispatcher, 'record' | 'logger'>,
  subscriptionId: string,
  { deactivateOn410, clientUrl, updatedAt }: Target,
  { response, error }: Pick<EgressResult, 'response' | 'error'>,
  interpretation: Interpretation | null,
): Promise<Interpretation | null> {
  const isGone = deactivateOn410 && error === null && response?.statusCode === GONE_STATUS;
  const meaning = isGone ? GONE : interpretation;
  if (meaning?.result !== 'failed_and_off' || updatedAt === null) return meaning;
  const { message } = meaning;
  try {
    if (await record.deactivateGone({ subscriptionId, clientUrl, updatedAt, reason: message })) {
      logger.warn({ subscriptionId, reason: message }, 'webhook deactivated by a response');
      return meaning;
    }
  } catch (err) {
    logger.warn({ err, subscriptionId }, 'a webhook could not be deactivated by a response; retried');
  }
  return { result: 'retry', message };
}
