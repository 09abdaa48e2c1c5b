// Pieces of SQL by hand: the log's times, which are told and asked for to the microsecond.

/** SQL for a timestamptz as the API shows it: microseconds since the epoch, as digits; null stays null. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::bigint::text`;
}

/** SQL for a parameter that holds such digits, as a timestamptz. Multiplied whole, so that no microsecond is lost. */
export function timestampOf(parameter: string): string {
  return `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`;
}
