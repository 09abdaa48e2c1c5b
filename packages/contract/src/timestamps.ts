/**
 * Returns a time as the API represents it: microseconds since the epoch, as digits in a string
 * (docs/contract.md#times).
 */
export function microsText(date: Date, micros = 0): string {
  return `${BigInt(date.getTime()) * 1000n + BigInt(micros)}`;
}

const RFC3339_UTC = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)$/;

/**
 * Returns a payload's `timestamp`: RFC 3339 UTC with nine fractional digits (docs/contract.md#times). Missing digits
 * are padded, never rounded. Null if the text is not a UTC time.
 */
export function nanosecondTimestamp(text: string): string | null {
  const match = RFC3339_UTC.exec(text);
  if (!match?.[1] || !isRealTime(match[1])) return null;
  return `${match[1]}.${(match[2] ?? '').padEnd(9, '0')}Z`;
}

const SECONDS_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/**
 * Whether the text is a time such as `runStartedAt`: ISO 8601 UTC with seconds precision and `Z`
 * (docs/contract.md#times).
 */
export function isIsoSecondsTime(text: string): boolean {
  return SECONDS_UTC.test(text) && isRealTime(text.slice(0, -1));
}

export function secondsTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Returns a time of the REST API v2: ISO 8601 UTC with six fractional digits and `Z`. */
export function microsecondTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 23)}000Z`;
}

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Rejects dates that match the pattern but do not exist, such as 30 February, and the year 0, which PostgreSQL does not
 * support. Uses arithmetic because Date takes ten times as long and every event has several timestamps.
 */
function isRealTime(secondsText: string): boolean {
  const year = Number(secondsText.slice(0, 4));
  const month = twoDigits(secondsText, 5);
  const day = twoDigits(secondsText, 8);
  const isLeapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = (MONTH_DAYS[month - 1] ?? 0) + (month === 2 && isLeapYear ? 1 : 0);
  return (
    year >= 1 &&
    day >= 1 &&
    day <= days &&
    twoDigits(secondsText, 11) < 24 &&
    twoDigits(secondsText, 14) < 60 &&
    twoDigits(secondsText, 17) < 60
  );
}

const CODE_OF_0 = 48;

function twoDigits(text: string, start: number): number {
  return (text.charCodeAt(start) - CODE_OF_0) * 10 + text.charCodeAt(start + 1) - CODE_OF_0;
}
