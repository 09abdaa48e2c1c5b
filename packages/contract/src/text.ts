// The rule for text at every entry point (docs/contract.md#text). Uses no Node.js API, so that the console can import
// it.

/**
 * Matches what I-JSON (RFC 7493) and PostgreSQL exclude from text: NUL, unpaired surrogates, and noncharacters
 * (U+FDD0 to U+FDEF, and the last two code points of each plane). With the flag `u` a complete pair is one character.
 */
const INVALID = /[\0\p{Surrogate}\p{Noncharacter_Code_Point}]/u;
const ALL_INVALID = new RegExp(INVALID, 'gu');

/**
 * Completes "<field> …" in the rejection of a configured text: one that a user enters, not one that a job runner
 * reports (docs/contract.md#text).
 */
export const INVALID_TEXT_PROBLEM = 'must not contain NUL, unpaired surrogates or noncharacters';

/** Whether the text contains a character that is not allowed in Runhook's JSON. */
export function hasInvalidText(text: string): boolean {
  return INVALID.test(text);
}

/** Returns the text with U+FFFD in place of each invalid character: a valid text is returned unchanged. */
export function wellFormedText(text: string): string {
  return INVALID.test(text) ? text.replace(ALL_INVALID, '\uFFFD') : text;
}

const HIGH_SURROGATES = /[\uD800-\uDBFF](?=[\uDC00-\uDFFF])/g;

/** Returns the length in code points; an unpaired surrogate counts as one. */
export function codePointLength(text: string): number {
  return text.length - (text.match(HIGH_SURROGATES)?.length ?? 0);
}

/** Whether a text has more than `charactersMax` code points; counts them only if its UTF-16 length does not decide. */
export function isLongerThan(text: string, charactersMax: number): boolean {
  if (text.length <= charactersMax) return false;
  return text.length > 2 * charactersMax || codePointLength(text) > charactersMax;
}

/** Returns the first `charactersMax` code points of the text, so that no surrogate pair is cut. */
export function truncateText(text: string, charactersMax: number): string {
  let end = 0;
  for (let count = 0; count < charactersMax && end < text.length; count += 1)
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  return text.slice(0, end);
}

/** Returns the text, or its beginning and an ellipsis if it has more than `charactersMax` code points. */
export function truncateWithEllipsis(text: string, charactersMax: number): string {
  return isLongerThan(text, charactersMax) ? `${truncateText(text, charactersMax)}…` : text;
}

/**
 * Returns a count with a comma between thousands. `toLocaleString` would map the locale data of Node into the process:
 * 4 MB of memory for one number.
 */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
