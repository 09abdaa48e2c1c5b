/**
 * SQL for whether one of the columns contains the parameter's text, whatever the case. Not LIKE: `%` and `_` are
 * characters like any other.
 */
export function containsText(parameter: string, columns: readonly string[]): string {
  return `(${columns.map((column) => `strpos(lower(${column}), lower(${parameter})) > 0`).join(' OR ')})`;
}
