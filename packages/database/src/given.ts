/** Columns of input rows, each passed as an array parameter: SQL type, and function that returns an item's value. */
export type Given<Thing> = Readonly<Record<string, readonly [type: string, of: (thing: Thing) => unknown]>>;

/**
 * Returns SQL for the input rows: `unnest($1::bigint[], …) AS alias ("id", …)`.
 * @param first number of the first array parameter
 * @param number name of an additional column that numbers the rows from 1
 */
export function givenRows(given: Given<never>, first: number, alias: string, number?: string): string {
  const arrays = Object.values(given).map(([type], index) => `$${first + index}::${type}[]`);
  const names = [...Object.keys(given), ...(number === undefined ? [] : [number])];
  const ordinality = number === undefined ? '' : ' WITH ORDINALITY';
  return `unnest(${arrays.join(', ')})${ordinality} AS ${alias} (${names.map((name) => `"${name}"`).join(', ')})`;
}

/** Returns the array parameters of {@link givenRows}. */
export function givenValues<Thing>(given: Given<Thing>, things: readonly Thing[]): unknown[][] {
  return Object.values(given).map(([, of]) => things.map(of));
}

/** Returns the number of array parameters. */
export function givenSize(given: Given<never>): number {
  return Object.keys(given).length;
}
