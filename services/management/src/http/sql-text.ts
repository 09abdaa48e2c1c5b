/**
 * SQL for whether one of the columns contains the parameter's text, whatever the case. Not LIKE: `%` and `_` are
 * characters like any other.
 */
export function containsText(parameter: string, columns: readonly string[]): string {
  return `(${columns.map((column) => `strpos(lower(${column}), lower(${parameter})) > 0`).join(' OR ')})`;
}

/** SQL for a timestamptz as the API shows it: microseconds since the epoch, as digits; null stays null. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::bigint::text`;
}

/** SQL for a parameter that holds such digits, as a timestamptz. Multiplied whole, so that no microsecond is lost. */
export function timestampOf(parameter: string): string {
  return `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`;
}
