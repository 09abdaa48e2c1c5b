import { truncateWithEllipsis } from '../text.ts';
import type { Interpretation, TargetResponse } from './format.ts';

/** Statuses of failures that pass without a change by the user: timeout, too early, rate limit, failure of the target. */
export function isTransient(statusCode: number): boolean {
  return statusCode === 408 || statusCode === 425 || statusCode === 429 || statusCode >= 500;
}

const EXCERPT_CHARACTERS_MAX = 200;

/** Returns the beginning of a response's body on one line, for a message. */
export function excerpt({ loggedBody }: TargetResponse): string {
  return truncateWithEllipsis(loggedBody.trim().replace(/\s+/g, ' '), EXCERPT_CHARACTERS_MAX);
}

/** Returns a sentence with the status and the beginning of the body. */
export function rejection(label: string, response: TargetResponse): string {
  const text = excerpt(response);
  return `${label} responded with ${response.statusCode}${text === '' ? '.' : `: ${text}`}`;
}

/**
 * Returns the meaning of a status other than 2xx, for a target whose 4xx reject the message or the address: final,
 * except for those that pass. Null for a redirect, which fails as for every endpoint.
 */
export function interpretStatus(label: string, response: TargetResponse): Interpretation | null {
  const { statusCode } = response;
  if (statusCode < 400) return null;
  const result = isTransient(statusCode) ? 'retry' : 'failed';
  return { result, message: rejection(label, response) };
}
