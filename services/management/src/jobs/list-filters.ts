/** Query parameters that the lists of jobs, projects and environments share. */
import { containsText } from '@runhook/database/prisma';
import { accountIdOf, idsIn } from '../http/filter-readers.ts';
import { createReader, integer, type QueryReader, searchText } from '../http/query-parameters.ts';

export const idParameter = integer(1, Number.MAX_SAFE_INTEGER);

/** Reads `account_id`, which must be that of the path. */
export function readAccountId(reader: QueryReader, accountId: number): void {
  reader.filter('account_id', accountIdOf(accountId));
}

/** Returns conditions on the name. @param contained parameters for a part of it */
export function readNameConditions(reader: QueryReader, contained: readonly string[]) {
  const parts = contained.map((parameter) => reader.filter(parameter, searchText));
  const name = reader.filter('name', searchText);
  return [
    ...parts.flatMap((part) => (part === null ? [] : [{ name: containsText(part) }])),
    ...(name === null ? [] : [{ name }]),
  ];
}

/** Returns a condition on an id for a parameter of one id and for those of lists of ids. */
export function readIds(
  reader: QueryReader,
  names: { one?: string; lists: readonly string[] },
): { in: bigint[] }[] {
  const one = names.one === undefined ? null : reader.filter(names.one, idParameter);
  const lists = [one === null ? null : [one], ...names.lists.map((list) => reader.list(list, idsIn))];
  return lists.flatMap((ids) => (ids === null ? [] : [{ in: ids.map(BigInt) }]));
}

/** Returns the state that rows must have: 1 unless the query has another one. */
export function readState(reader: QueryReader): 1 | 2 {
  return reader.filter('state', stateOf) ?? 1;
}

const stateOf = createReader(
  (text) => (text === '1' ? 1 : text === '2' ? 2 : null),
  'must be 1 (not deleted) or 2 (deleted)',
);
