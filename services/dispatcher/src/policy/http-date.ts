const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const ASCTIME = new RegExp(
  `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:${MONTHS}) [ \\d]\\d \\d\\d:\\d\\d:\\d\\d \\d{4}$`,
);

/** Returns a date of HTTP in milliseconds since the epoch (RFC 9110, 5.6.7, with its obsolete forms), or null. */
export function httpDateMs(text: string): number | null {
  // The form of asctime is in UTC, and names no zone.
  const zonedText = ASCTIME.test(text) ? `${text} GMT` : text;
  const timeMs = zonedText.endsWith('GMT') ? Date.parse(zonedText) : Number.NaN;
  return Number.isNaN(timeMs) ? null : timeMs;
}
