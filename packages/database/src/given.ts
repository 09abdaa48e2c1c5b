/** What a statement is given of many things, an array for each column: of which type, and what a thing has for it. */
export type Given<Thing> = Readonly<Record<string, readonly [type: string, of: (thing: Thing) => unknown]>>;

/**
 * SQL of the things as rows: `unnest($1::bigint[], …) AS alias ("id", …)`.
 * @param first the number of the first of their parameters
 * @param number the name of a further column, in which they are numbered from 1
 */
export function givenRows(given: Given<never>, first: number, alias: string, number?: string): string {
  const arrays = Object.values(given).map(([type], index) => `$${first + index}::${type}[]`);
  const names = [...Object.keys(given), ...(number === undefined ? [] : [number])];
  const ordinality = number === undefined ? '' : ' WITH ORDINALITY';
  return `unnest(${arrays.join(', ')})${ordinality} AS ${alias} (${names.map((name) => `"${name}"`).join(', ')})`;
}

/** The parameters of {@link givenRows}. */
export function givenValues<Thing>(given: Given<Thing>, things: readonly Thing[]): unknown[][] {
  return Object.values(given).map(([, of]) => things.map(of));
}

/** How many parameters they are. */
export function givenSize(given: Given<never>): number {
  return Object.keys(given).length;
}
