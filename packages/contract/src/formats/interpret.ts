import type { Buffer } from 'node:buffer';
import type { Format, Interpretation } from './format.ts';

/** Error code of a 2xx that is a failure for the format of the webhook. */
export const NOT_ACCEPTED = 'not_accepted';

/**
 * Returns the meaning of a complete or cut-off response for the format; null if its status decides.
 * @param logged the body as the log stores it, which messages quote
 */
export function interpretTargetResponse(
  format: Format,
  { statusCode, body, truncated }: { statusCode: number; body: Buffer; truncated: boolean },
  logged: { body: string },
): Interpretation | null {
  const isComplete = !truncated;
  return format.interpret({ statusCode, body: body.toString('utf8'), isComplete, loggedBody: logged.body });
}
