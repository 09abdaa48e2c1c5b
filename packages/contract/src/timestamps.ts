/** Times in the API: microseconds since the epoch, as digits in a string (spec, section 2.1). */
export function microsText(date: Date, micros = 0): string {
  return `${BigInt(date.getTime()) * 1000n + BigInt(micros)}`;
}

const RFC3339_UTC = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)$/;

/**
 * A payload's `timestamp`: RFC 3339 UTC with nine fractional digits (spec, section 2.3). Missing digits are
 * padded, never rounded. Null when the text is no UTC time.
 */
export function nanosecondTimestamp(text: string): string | null {
  const match = RFC3339_UTC.exec(text);
  if (!match?.[1] || !isRealTime(match[1])) return null;
  return `${match[1]}.${(match[2] ?? '').padEnd(9, '0')}Z`;
}

const SECONDS_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** `runStartedAt` and its siblings: ISO 8601 UTC with seconds precision and `Z` (spec, section 2.3). */
export function isSecondsTimestamp(text: string): boolean {
  return SECONDS_UTC.test(text) && isRealTime(text.slice(0, -1));
}

export function secondsTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Refuses what the pattern lets through but no calendar has, such as 30 February, which Date would roll over. */
function isRealTime(secondsText: string): boolean {
  const timeMs = Date.parse(`${secondsText}Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(secondsText);
}
