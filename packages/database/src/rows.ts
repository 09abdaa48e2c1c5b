import type pg from 'pg';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

/** Tells whether a value is what a column of a statement's answer must hold. */
export type Column<T> = (value: unknown) => value is T;

type Columns = Record<string, Column<unknown>>;

/** A row that was found to have the columns. */
export type RowOf<C extends Columns> = {
  [K in keyof C]: C[K] extends Column<infer T> ? T : never;
};

/** A statement answered something else than the code that reads it expects: they do not fit together. */
export class UnexpectedRowError extends TypeError {
  readonly code = 'unexpected_row';
}

/** What columns hold, as the driver brings it. */
export const column = {
  text: (value: unknown): value is string => typeof value === 'string',
  /** A bigint: the driver brings it as text. */
  digits: (value: unknown): value is string => typeof value === 'string' && /^-?\d+$/.test(value),
  integer: (value: unknown): value is number => Number.isInteger(value),
  float: (value: unknown): value is number => typeof value === 'number',
  flag: (value: unknown): value is boolean => typeof value === 'boolean',
  texts: (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((item) => typeof item === 'string'),
  /** A JSON object. */
  object: (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
  /** A JSON object that has texts only. */
  textsByName: (value: unknown): value is Record<string, string> =>
    column.object(value) && Object.values(value).every((item) => typeof item === 'string'),
  oneOf:
    <T extends string>(values: readonly T[]): Column<T> =>
    (value: unknown): value is T =>
      values.some((candidate) => candidate === value),
  orNull:
    <T>(of: Column<T>): Column<T | null> =>
    (value: unknown): value is T | null =>
      value === null || of(value),
};

/**
 * Runs one statement, as `runStatement` does, and holds its rows against the columns that it must have. It may have
 * others. Throws an {@link UnexpectedRowError} that names the column.
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

/** Whether a row has the columns, with an {@link UnexpectedRowError} for no. */
export function requireColumns<C extends Columns>(row: pg.QueryResultRow, columns: C): row is RowOf<C> {
  for (const name in columns) {
    if (!columns[name]?.(row[name]))
      throw new UnexpectedRowError(`a row has no such "${name}" as it must have`);
  }
  return true;
}
