import type { Buffer } from 'node:buffer';
import type { Format, Interpretation } from './format.ts';

/** Error code of a 2xx that is a failure for the format of the webhook. */
export const NOT_ACCEPTED = 'not_accepted';

/** Returns the meaning of a complete or cut-off response for the format; null if its status decides. */
export function interpretTargetResponse(
  format: Format,
  { statusCode, body, truncated }: { statusCode: number; body: Buffer; truncated: boolean },
): Interpretation | null {
  return format.interpret({ statusCode, body: body.toString('utf8'), isComplete: !truncated });
}
