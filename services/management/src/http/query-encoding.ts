import { unescape as unescapeLeniently } from 'node:querystring';
import type { Problem } from '@runhook/contract';
import { InvalidRequestError } from './errors.ts';

/** Maximum number of parameters in an error; all of them could be as long as a URL. */
const PROBLEMS_MAX = 20;

/**
 * Throws {@link InvalidRequestError} if the query has escaped bytes that are not UTF-8: the parser would replace them by
 * U+FFFD, so that a filter would apply to another text than the caller's.
 * @param url path and query of the request
 */
export function requireUtf8Query(url: string): void {
  const start = url.indexOf('?') + 1;
  if (start === 0 || !url.includes('%', start)) return;
  const invalid = url
    .slice(start)
    .split('&')
    .filter((pair) => !isUtf8(pair));
  if (invalid.length > 0) throw new InvalidRequestError(invalid.slice(0, PROBLEMS_MAX).map(problemOf));
}

const ESCAPED_BYTES = /(?:%[0-9a-f]{2})+/gi;

/** A single `%` is the character itself, as in every parser of URLs. */
function isUtf8(pair: string): boolean {
  try {
    for (const [bytes] of pair.matchAll(ESCAPED_BYTES)) decodeURIComponent(bytes);
    return true;
  } catch {
    return false;
  }
}

function problemOf(pair: string): Problem {
  const [name = ''] = pair.split('=', 1);
  const field = unescapeLeniently(name.replaceAll('+', ' '));
  return { field, message: `${field} must be UTF-8, percent-encoded` };
}
