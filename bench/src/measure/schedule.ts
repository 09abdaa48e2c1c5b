/** When each event should be published, in milliseconds from the start: evenly spaced, fixed before the run. */
export function evenSchedule(ratePerSecond: number, durationMs: number): Float64Array {
  const count = Math.max(1, Math.round((ratePerSecond * durationMs) / 1000));
  return Float64Array.from({ length: count }, (_, index) => (index * 1000) / ratePerSecond);
}

/** How many of the events are due. The schedule is in ascending order. */
export function dueCount(schedule: Float64Array, elapsedMs: number, alreadyDue = 0): number {
  let due = alreadyDue;
  while (due < schedule.length && (schedule[due] as number) <= elapsedMs) due += 1;
  return due;
}
