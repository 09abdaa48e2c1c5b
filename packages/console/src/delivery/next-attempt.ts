import { parseTime } from '../words/time.ts';

const SECOND_MS = 1_000;
const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3_600;

/** "Attempt 2 in 24 s", "Attempt 2 in 3 min 5 s", "Attempt 1 any moment now" */
export function nextAttemptWords(at: string, attemptCount: number, nowMs: number): string {
  const name = `Attempt ${attemptCount + 1}`;
  const date = parseTime(at);
  if (date === null) return name;
  const seconds = Math.ceil((date.getTime() - nowMs) / SECOND_MS);
  return seconds <= 0 ? `${name} any moment now` : `${name} in ${countdown(seconds)}`;
}

function countdown(seconds: number): string {
  if (seconds < MINUTE_SECONDS) return `${seconds} s`;
  if (seconds < HOUR_SECONDS)
    return `${Math.floor(seconds / MINUTE_SECONDS)} min ${seconds % MINUTE_SECONDS} s`;
  return `${Math.floor(seconds / HOUR_SECONDS)} h ${Math.floor((seconds % HOUR_SECONDS) / MINUTE_SECONDS)} min`;
}
