/** Columns of input rows, each passed as an array parameter: SQL type, and function that returns an item's value. */
export type UnnestColumns<Item> = Readonly<
  Record<string, readonly [type: string, read: (item: Item) => unknown]>
>;

/**
 * Returns SQL for the input rows: `unnest($1::bigint[], …) AS alias ("id", …)`.
 * @param firstParameter number of the first array parameter
 * @param ordinalityColumn name of an additional column that numbers the rows from 1
 */
export function unnestSql(
  columns: UnnestColumns<never>,
  firstParameter: number,
  alias: string,
  ordinalityColumn?: string,
): string {
  const arrays = Object.values(columns).map(([type], index) => `$${firstParameter + index}::${type}[]`);
  const names = [...Object.keys(columns), ...(ordinalityColumn === undefined ? [] : [ordinalityColumn])];
  const ordinality = ordinalityColumn === undefined ? '' : ' WITH ORDINALITY';
  return `unnest(${arrays.join(', ')})${ordinality} AS ${alias} (${names.map((name) => `"${name}"`).join(', ')})`;
}

/** Returns the array parameters of {@link unnestSql}. */
export function unnestValues<Item>(columns: UnnestColumns<Item>, items: readonly Item[]): unknown[][] {
  return Object.values(columns).map(([, read]) => items.map(read));
}

/** Returns the number of array parameters. */
export function unnestParameterCount(columns: UnnestColumns<never>): number {
  return Object.keys(columns).length;
}
