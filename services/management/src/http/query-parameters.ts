import {
  hasInvalidText,
  INVALID_TEXT_PROBLEM,
  integerIdFromText,
  isLongerThan,
  type Problem,
} from '@runhook/contract';
import { InvalidRequestError } from './errors.ts';

type Query = Readonly<Record<string, string | string[] | undefined>>;

/** The value, or the problem as a phrase that completes "limit …". */
export type ParseResult<T> = { value: T } | { problem: string };

export interface Page {
  limit: number;
  offset: number;
}

export const LIMIT_MAX = 100;
export const LIMIT_DEFAULT = 10;
export const SEARCH_CHARACTERS_MAX = 255;

/** Parameter that clients of this API family send with every list; endpoints without related objects accept no name. */
const RELATED_PARAMETER = 'include_related';

/**
 * Reads query parameters and collects their problems, so that one 400 names all of them. Unread parameters are
 * problems, too, because a filter that is not applied must not appear to work.
 */
export class QueryReader {
  readonly #query: Query;
  readonly #readFields = new Set<string>();
  readonly #problems: Problem[] = [];

  constructor(query: Query) {
    this.#query = query;
  }

  /** Returns the parameter's value, or null if the query does not have it. A repeated parameter is a problem. */
  optional<T>(field: string, read: (text: string) => ParseResult<T>): T | null {
    return this.list(field, ([text = '', ...others]) =>
      others.length > 0 ? { problem: 'must be given once' } : read(text),
    );
  }

  /** Returns the value as `optional` does; an empty one counts as omitted, since some clients send all parameters. */
  filter<T>(field: string, read: (text: string) => ParseResult<T>): T | null {
    if (this.#query[field] !== '') return this.optional(field, read);
    this.#readFields.add(field);
    return null;
  }

  /** Returns the value of a parameter that may be repeated, or null if the query does not have it. */
  list<T>(field: string, read: (texts: readonly string[]) => ParseResult<T>): T | null {
    this.#readFields.add(field);
    const text = this.#query[field];
    if (text === undefined) return null;
    const result = read(Array.isArray(text) ? text : [text]);
    if ('value' in result) return result.value;
    this.#problems.push({ field, message: `${field} ${result.problem}` });
    return null;
  }

  /** Returns the value as `optional` does, but a missing one is a problem, so that {@link check} throws. */
  required<T>(field: string, read: (text: string) => ParseResult<T>): T {
    if (this.#query[field] === undefined) this.#problems.push({ field, message: `${field} must be given` });
    return this.optional(field, read) as T;
  }

  page(): Page {
    const limit = this.optional('limit', integer(1, LIMIT_MAX)) ?? LIMIT_DEFAULT;
    const offset = this.optional('offset', integer(0, Number.MAX_SAFE_INTEGER)) ?? 0;
    return { limit, offset };
  }

  /** Throws {@link InvalidRequestError} if a parameter was invalid or unknown. */
  check(): void {
    if (!this.#readFields.has(RELATED_PARAMETER)) this.list(RELATED_PARAMETER, noNames);
    const unknown = Object.keys(this.#query).filter((field) => !this.#readFields.has(field));
    const problems = [...this.#problems, ...unknown.slice(0, UNKNOWN_MAX).map(unknownProblem)];
    if (problems.length > 0) throw new InvalidRequestError(problems);
  }
}

function noNames(texts: readonly string[]): ParseResult<null> {
  return texts.every((text) => /^\s*(\[\s*\])?\s*$/.test(text))
    ? { value: null }
    : { problem: 'must be empty: this call has no related objects' };
}

/** Maximum number of unknown parameters in an error; all of them could be as long as a URL. */
const UNKNOWN_MAX = 20;

function unknownProblem(field: string): Problem {
  return { field, message: `${field} is not a parameter of this call` };
}

export function integer(min: number, max: number): (text: string) => ParseResult<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `between ${min} and ${max}`;
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { problem: `must be an integer ${range}` };
  };
}

export function oneOf<T extends string>(values: readonly T[]): (text: string) => ParseResult<T> {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    return value === undefined ? { problem: `must be one of ${values.join(', ')}` } : { value };
  };
}

/** Reads a name, or a name preceded by a minus for descending order, as clients of this API family write it. */
export function orderOf<T extends string>(
  names: readonly T[],
): (text: string) => ParseResult<{ by: T; isDescending: boolean }> {
  return (text) => {
    const isDescending = text.startsWith('-');
    const by = names.find((name) => name === text.slice(isDescending ? 1 : 0));
    return by === undefined
      ? { problem: `must be one of ${names.join(', ')}, optionally with a leading minus` }
      : { value: { by, isDescending } };
  };
}

/** Reads names separated by commas, each of them from `values`. */
export function someOf<T extends string>(
  values: readonly T[],
): (text: string) => ParseResult<ReadonlySet<T>> {
  return (text) => {
    const names = text.split(',');
    const validNames = values.filter((value) => names.includes(value));
    return validNames.length === names.length
      ? { value: new Set(validNames) }
      : { problem: `must be one or more of ${values.join(', ')}, separated by commas, without repeats` };
  };
}

/** Reads a search text. An empty one counts as omitted, since forms send it so. */
export function searchText(text: string): ParseResult<string | null> {
  if (hasInvalidText(text)) return { problem: INVALID_TEXT_PROBLEM };
  if (isLongerThan(text, SEARCH_CHARACTERS_MAX))
    return { problem: `must not be longer than ${SEARCH_CHARACTERS_MAX} characters` };
  return { value: text === '' ? null : text };
}

/** Reads ids separated by commas, at most as many as a page has. */
export function idList(text: string): ParseResult<number[]> {
  const ids = text.split(',').map(integerIdFromText);
  const areAllIds = (found: (number | null)[]): found is number[] => !found.includes(null);
  if (!areAllIds(ids)) return { problem: 'must be ids (digits) separated by commas' };
  return ids.length > LIMIT_MAX ? { problem: `must not have more than ${LIMIT_MAX} ids` } : { value: ids };
}

/** Makes a reader of a function that returns null for invalid text. @param problem completes "since …" */
export function createReader<T>(
  parse: (text: string) => T | null,
  problem: string,
): (text: string) => ParseResult<T> {
  return (text) => {
    const value = parse(text);
    return value === null ? { problem } : { value };
  };
}

const MICROS_PATTERN = /^\d{1,18}$/;
const ISO_PATTERN = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}))?$/;
/** The end of the year 9999. */
const MICROS_MAX = 253_402_300_799_999_999n;

/**
 * Parses a timestamp of a filter: microseconds since the epoch in digits, or ISO 8601 (a date means its start in UTC; a
 * time needs its zone). Returns the digits, or null.
 */
export function microsFromText(text: string): string | null {
  if (MICROS_PATTERN.test(text)) return BigInt(text) <= MICROS_MAX ? String(BigInt(text)) : null;
  const [, day, time = '00:00', fraction = '', zone = 'Z'] = ISO_PATTERN.exec(text) ?? [];
  if (day === undefined || !isValidDay(day)) return null;
  const timeMs = Date.parse(`${day}T${time}${zone}`);
  if (Number.isNaN(timeMs) || timeMs < 0) return null;
  return String(BigInt(timeMs) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0')));
}

/** Completes "since …" for text that is not a timestamp. */
export const TIMESTAMP_PROBLEM =
  'must be microseconds since the epoch, in digits, or an ISO 8601 time with its zone';

export const timestamp = createReader(microsFromText, TIMESTAMP_PROBLEM);

/** Rejects dates such as 30 February, which Date would accept as 1 or 2 March. */
function isValidDay(day: string): boolean {
  const timeMs = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(day);
}
