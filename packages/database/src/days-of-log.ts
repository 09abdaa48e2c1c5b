/**
 * SQL: restricts each alias to the days of an array parameter. A plan that is made for the values opens the partitions of
 * these days only, so it costs less than a generic plan, which opens all of them, and PostgreSQL keeps to it.
 *
 * The source of the keys (`unnest(…) AS k`) must be among the aliases: PostgreSQL then expects one key, whatever the size of the
 * batch, and finds each row by the key's index. With the number of keys known it would read a day that has no statistics.
 */
export function inDays(parameter: string, ...aliases: string[]): string {
  return aliases.map((alias) => `${alias}.day = ANY(${parameter}::date[])`).join(' AND ');
}

/** The value of the parameter of {@link inDays}: each day once. */
export function distinctDays(days: readonly string[]): string[] {
  return [...new Set(days)];
}
