const MICROS = /^\d{1,18}$/;
const ISO = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}))?$/;
/** The end of the year 9999. */
const MICROS_MAX = 253_402_300_799_999_999n;

/**
 * A moment as a filter takes it: microseconds since the epoch in digits, or ISO 8601 (a day is its UTC beginning, a
 * time of day needs its zone). Answers the digits, or null.
 */
export function microsFromText(text: string): string | null {
  if (MICROS.test(text)) return BigInt(text) <= MICROS_MAX ? String(BigInt(text)) : null;
  const [, day, time = '00:00', fraction = '', zone = 'Z'] = ISO.exec(text) ?? [];
  if (day === undefined || !isRealDay(day)) return null;
  const timeMs = Date.parse(`${day}T${time}${zone}`);
  if (Number.isNaN(timeMs) || timeMs < 0) return null;
  return String(BigInt(timeMs) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0')));
}

/** What completes "since …" for a text that is no moment. */
export const MOMENT_PROBLEM =
  'must be microseconds since the epoch, in digits, or an ISO 8601 time with its zone';

/** Date would roll 30 February over. */
function isRealDay(day: string): boolean {
  const timeMs = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(day);
}
