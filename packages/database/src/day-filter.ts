/**
 * Returns SQL that restricts each alias to the days of an array parameter. A custom plan opens the partitions of these
 * days only, so it costs less than a generic plan, which opens all of them, and PostgreSQL continues to use custom
 * plans.
 *
 * The source of the keys (`unnest(…) AS k`) must be among the aliases: PostgreSQL then expects one key, whatever the
 * size of the batch, and finds each row by the key's index. If it expected many keys, it would scan a day that has no
 * statistics.
 */
export function inDays(parameter: string, ...aliases: string[]): string {
  return aliases.map((alias) => `${alias}.day = ANY(${parameter}::date[])`).join(' AND ');
}

/** Returns the value of the parameter of {@link inDays}: each day once. */
export function distinctDays(days: readonly string[]): string[] {
  return [...new Set(days)];
}
