import type { Tone } from './http-status.ts';
import { formatDuration } from './time.ts';

/** @param status number of the status in the API */
export function stepTone(status: number): Tone {
  if (status === 10) return 'good';
  if (status === 20) return 'bad';
  return status === 30 ? 'neutral' : 'waiting';
}

/** "3 min 20 s"; empty for a step without reported times. */
export function formatStepDuration({
  started_at,
  finished_at,
}: {
  started_at: string | null;
  finished_at: string | null;
}): string {
  if (started_at === null || finished_at === null) return '';
  return formatDuration(Math.max(0, Date.parse(finished_at) - Date.parse(started_at)));
}
