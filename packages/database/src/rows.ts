import type pg from 'pg';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

/** Type guard for the value of a column in a statement's result. */
export type Column<T> = (value: unknown) => value is T;

type Columns = Record<string, Column<unknown>>;

/** A row whose columns were checked. */
export type RowOf<C extends Columns> = {
  [K in keyof C]: C[K] extends Column<infer T> ? T : never;
};

/** A row lacks a column that the code expects, or has another type there: statement and code are incompatible. */
export class UnexpectedRowError extends TypeError {
  readonly code = 'unexpected_row';
}

/** Checks for values of columns, as the driver returns them. */
export const column = {
  text: (value: unknown): value is string => typeof value === 'string',
  /** A bigint, which the driver returns as text. */
  digits: (value: unknown): value is string => typeof value === 'string' && /^-?\d+$/.test(value),
  integer: (value: unknown): value is number => Number.isInteger(value),
  float: (value: unknown): value is number => typeof value === 'number',
  flag: (value: unknown): value is boolean => typeof value === 'boolean',
  texts: (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((item) => typeof item === 'string'),
  /** A JSON object. */
  object: (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
  /** A JSON object whose values are all texts. */
  textsByName: (value: unknown): value is Record<string, string> =>
    column.object(value) && Object.values(value).every((item) => typeof item === 'string'),
  oneOf:
    <T extends string>(values: readonly T[]): Column<T> =>
    (value: unknown): value is T =>
      values.some((candidate) => candidate === value),
  orNull:
    <T>(isValid: Column<T>): Column<T | null> =>
    (value: unknown): value is T | null =>
      value === null || isValid(value),
};

/**
 * Runs one statement, as `runStatement` does, and checks the required columns of its rows; others are allowed.
 * @throws UnexpectedRowError with the name of the column
 */
export async function queryRows<C extends Columns>(
  database: Queryable,
  columns: C,
  text: string,
  values: unknown[],
  name?: string,
): Promise<RowOf<C>[]> {
  const rows = await runStatement(database, text, values, name);
  return rows.filter((row) => requireColumns(row, columns));
}

/** Returns true if a row has the columns. @throws UnexpectedRowError otherwise */
export function requireColumns<C extends Columns>(row: pg.QueryResultRow, columns: C): row is RowOf<C> {
  for (const name in columns) {
    if (!columns[name]?.(row[name])) throw new UnexpectedRowError(`a row has no valid "${name}"`);
  }
  return true;
}
