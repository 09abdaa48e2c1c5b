/**
 * Readers of filters as clients of this API family write them (docs/contract.md#requests-and-responses). Those of lists
 * are for {@link QueryReader.list}, the others for {@link QueryReader.filter}. An empty value and `[]` are no filter.
 */
import { integerIdFromText } from '@runhook/contract';
import {
  createReader,
  LIMIT_MAX,
  microsFromText,
  type ParseResult,
  TIMESTAMP_PROBLEM,
} from './query-parameters.ts';

/**
 * Returns the items of a list: `[1,2]`, `["a","b"]`, `['a', 'b']`, `a,b`, and a repeated parameter. Null if a bracket
 * has no counterpart.
 */
export function listItems(texts: readonly string[]): string[] | null {
  const items: string[] = [];
  for (const text of texts) {
    const trimmed = text.trim();
    if (trimmed.startsWith('[') !== trimmed.endsWith(']')) return null;
    const inner = trimmed.startsWith('[') ? trimmed.slice(1, -1) : trimmed;
    items.push(...inner.split(',').map(unquoted));
  }
  return items.filter((item) => item !== '');
}

function unquoted(text: string): string {
  return text.trim().replace(/^["']/, '').replace(/["']$/, '').trim();
}

/** Reads a list of values. @param problem completes "status__in …" */
export function listOf<T>(
  read: (text: string) => T | null,
  problem: string,
): (texts: readonly string[]) => ParseResult<readonly T[] | null> {
  return (texts) => {
    const items = listItems(texts);
    if (items === null) return { problem };
    if (items.length > LIMIT_MAX) return { problem: `must not have more than ${LIMIT_MAX} items` };
    const values = items.map(read);
    if (values.includes(null)) return { problem };
    return { value: values.length === 0 ? null : (values as T[]) };
  };
}

/** Reads ids such as `[1,2]`. */
export const idsIn = listOf(integerIdFromText, 'must be ids (digits), separated by commas');

export function booleanValue(text: string): ParseResult<boolean> {
  if (['true', 'True', '1'].includes(text)) return { value: true };
  if (['false', 'False', '0'].includes(text)) return { value: false };
  return { problem: 'must be true or false' };
}

/** Reads the `account_id` that clients send in addition to that of the path. */
export function accountIdOf(accountId: number): (text: string) => ParseResult<number> {
  return (text) =>
    text === String(accountId)
      ? { value: accountId }
      : { problem: `must be ${accountId}, the account of the path` };
}

/** The ends of a `…__range`, both inclusive, in microseconds since the epoch, as digits; null without that end. */
export interface TimeRange {
  from: string | null;
  to: string | null;
}

const RANGE_PROBLEM = 'must be two times such as ["2026-01-31T00:00:00Z","2026-02-01T00:00:00Z"]';

/** Reads a range such as `["2026-01-31T00:00:00Z","2026-02-01T00:00:00.5+00:00"]`; an empty end is open. */
export function timeRange(texts: readonly string[]): ParseResult<TimeRange | null> {
  if (texts.length !== 1) return { problem: 'must be given once' };
  const text = (texts[0] as string).trim();
  if (text === '' || /^\[\s*\]$/.test(text)) return { value: null };
  if (text.startsWith('[') !== text.endsWith(']')) return { problem: RANGE_PROBLEM };
  const ends = (text.startsWith('[') ? text.slice(1, -1) : text).split(',').map(unquoted);
  if (ends.length !== 2) return { problem: RANGE_PROBLEM };
  const bounds: (string | null)[] = [];
  for (const end of ends) {
    const micros = end === '' || end === 'null' ? null : familyMicros(end);
    if (micros === null && end !== '' && end !== 'null')
      return { problem: `must have two times, each of which ${TIMESTAMP_PROBLEM}` };
    bounds.push(micros);
  }
  const [from = null, to = null] = bounds;
  return { value: { from, to } };
}

/**
 * Returns the microseconds of a time as clients of this API family write it: in addition to the formats of
 * {@link microsFromText}, with a space instead of the `T` or of an unescaped `+`, and without a zone, which is UTC.
 */
function familyMicros(text: string): string | null {
  const iso = text
    .replace(/^(\d{4}-\d{2}-\d{2}) /, '$1T')
    .replace(/ (\d{2}:\d{2})$/, '+$1')
    .replace(/(T[\d:.]+)$/, '$1Z');
  return microsFromText(iso);
}

export const familyTimestamp = createReader(familyMicros, TIMESTAMP_PROBLEM);

const DAY_MICROS = 86_400_000_000n;

/** Reads an inclusive end: a date includes its whole day in UTC. */
export const familyEnd = createReader((text) => {
  const micros = familyMicros(text);
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text);
  return micros !== null && isDate ? String(BigInt(micros) + DAY_MICROS - 1n) : micros;
}, TIMESTAMP_PROBLEM);

/** Returns SQL for a time. @param parameter microseconds since the epoch, as digits */
export function timestampSql(parameter: string): string {
  return `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;
}

/**
 * Returns SQL for a range of a column of times. A row whose time has whole seconds only may have happened at any moment
 * of that second, so the lower bound counts from its second: a client that continues from its upper bound finds it.
 * @param parameter adds a value, and returns its parameter
 */
export function timeRangeSql(
  column: string,
  { from, to }: TimeRange,
  parameter: (value: string) => string,
): string[] {
  const timeSql = (micros: string) => timestampSql(parameter(micros));
  const conditions: string[] = [];
  if (from !== null) {
    const secondOfFrom = `${BigInt(from) - (BigInt(from) % 1_000_000n)}`;
    conditions.push(
      `${column} >= ${timeSql(secondOfFrom)}`,
      `(${column} >= ${timeSql(from)} OR ${column} = date_trunc('second', ${column}))`,
    );
  }
  if (to !== null) conditions.push(`${column} <= ${timeSql(to)}`);
  return conditions;
}
