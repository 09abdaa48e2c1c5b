import { listItems } from './filter-readers.ts';
import type { ParseResult } from './query-parameters.ts';

/**
 * Reads `include_related`, for {@link QueryReader.list}: each of its names must be in the closed list. Accepts the
 * spellings of {@link listItems}, and an item that has several names.
 */
export function relatedNames<T extends string>(
  names: readonly T[],
): (texts: readonly string[]) => ParseResult<ReadonlySet<T>> {
  return (texts) => {
    const found = listItems(texts)?.map((item) => names.find((name) => name === item));
    if (found === undefined || found.includes(undefined))
      return { problem: `must have names of ${names.join(', ')} only` };
    return { value: new Set(found as T[]) };
  };
}
