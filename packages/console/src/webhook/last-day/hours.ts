const hourFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const HOUR_MS = 3_600_000;

function startMsOf(hourStart: string): number {
  return Math.floor(Number(hourStart) / 1_000);
}

/** "14:00", in the reader's zone. @param hourStart microseconds since the epoch, as digits */
export function hourLabel(hourStart: string): string {
  return hourFormat.format(startMsOf(hourStart));
}

/** "Fri 14:00 to 15:00", in the reader's zone. */
export function hourSpan(hourStart: string): string {
  const startMs = startMsOf(hourStart);
  return `${dayFormat.format(startMs)} to ${hourFormat.format(startMs + HOUR_MS)}`;
}
