import {
  hasInvalidText,
  INVALID_TEXT_PROBLEM,
  integerIdFromText,
  isLongerThan,
  type Problem,
} from '@runhook/contract';
import { InvalidRequestError } from './errors.ts';

type Query = Readonly<Record<string, string | string[] | undefined>>;

/** Reads one value: the value itself, or what completes "limit …" when it is none. */
type Reading<T> = { value: T } | { problem: string };

export interface Page {
  limit: number;
  offset: number;
}

export const LIMIT_MAX = 100;
export const LIMIT_DEFAULT = 10;
export const SEARCH_CHARACTERS_MAX = 255;

/** Clients of this API family send it with every list; where nothing is to be included, it is none of ours. */
const TOLERATED = 'include_related';

/**
 * Reads query parameters and collects what is wrong with them, so that one 400 names every bad one. What nobody has read
 * by the end is bad, too: a filter that is not applied must not look as if it were.
 */
export class QueryReader {
  readonly #query: Query;
  readonly #known = new Set([TOLERATED]);
  readonly #problems: Problem[] = [];

  constructor(query: Query) {
    this.#query = query;
  }

  /** The parameter's value, or null when the query does not have it. A repeated one is a problem. */
  optional<T>(field: string, read: (text: string) => Reading<T>): T | null {
    this.#known.add(field);
    const text = this.#query[field];
    if (text === undefined) return null;
    const reading = Array.isArray(text) ? { problem: 'must be given once' } : read(text);
    if ('value' in reading) return reading.value;
    this.#problems.push({ field, message: `${field} ${reading.problem}` });
    return null;
  }

  /** As `optional`; leaving it out is a problem. What it answers then is never used: {@link check} throws. */
  required<T>(field: string, read: (text: string) => Reading<T>): T {
    if (this.#query[field] === undefined) this.#problems.push({ field, message: `${field} must be given` });
    return this.optional(field, read) as T;
  }

  page(): Page {
    const limit = this.optional('limit', integer(1, LIMIT_MAX)) ?? LIMIT_DEFAULT;
    const offset = this.optional('offset', integer(0, Number.MAX_SAFE_INTEGER)) ?? 0;
    return { limit, offset };
  }

  /** Throws {@link InvalidRequestError} when any parameter was bad, or is not one that was asked for. */
  check(): void {
    const unknown = Object.keys(this.#query).filter((field) => !this.#known.has(field));
    const problems = [...this.#problems, ...unknown.slice(0, UNKNOWN_MAX).map(asUnknown)];
    if (problems.length > 0) throw new InvalidRequestError(problems);
  }
}

/** Nobody is helped by a longer list, which would be as long as a URL may be. */
const UNKNOWN_MAX = 20;

function asUnknown(field: string): Problem {
  return { field, message: `${field} is not a parameter of this call` };
}

export function integer(min: number, max: number): (text: string) => Reading<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `between ${min} and ${max}`;
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { problem: `must be an integer ${range}` };
  };
}

export function oneOf<T extends string>(values: readonly T[]): (text: string) => Reading<T> {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    return value === undefined ? { problem: `must be one of ${values.join(', ')}` } : { value };
  };
}

/** A name, or a name with a minus before it for the reverse order, as clients of this API family write it. */
export function orderOf<T extends string>(
  names: readonly T[],
): (text: string) => Reading<{ by: T; isDescending: boolean }> {
  return (text) => {
    const isDescending = text.startsWith('-');
    const by = names.find((name) => name === text.slice(isDescending ? 1 : 0));
    return by === undefined
      ? { problem: `must be one of ${names.join(', ')}, or one of them with a minus before it` }
      : { value: { by, isDescending } };
  };
}

/** Names between commas, each of the given ones. */
export function someOf<T extends string>(values: readonly T[]): (text: string) => Reading<ReadonlySet<T>> {
  return (text) => {
    const names = text.split(',');
    const known = values.filter((value) => names.includes(value));
    return known.length === names.length
      ? { value: new Set(known) }
      : { problem: `must be names with commas between them, each once, of: ${values.join(', ')}` };
  };
}

/** A text to look for. Empty is the same as left out: forms send it so. */
export function searchText(text: string): Reading<string | null> {
  if (hasInvalidText(text)) return { problem: INVALID_TEXT_PROBLEM };
  if (isLongerThan(text, SEARCH_CHARACTERS_MAX))
    return { problem: `must not be longer than ${SEARCH_CHARACTERS_MAX} characters` };
  return { value: text === '' ? null : text };
}

/** Ids between commas, at most as many as a page can have. */
export function idList(text: string): Reading<number[]> {
  const ids = text.split(',').map(integerIdFromText);
  const isGood = (found: (number | null)[]): found is number[] => !found.includes(null);
  if (!isGood(ids)) return { problem: 'must be ids, digits with commas between them' };
  return ids.length > LIMIT_MAX ? { problem: `must not have more than ${LIMIT_MAX} ids` } : { value: ids };
}

export function trueOrFalse(text: string): Reading<boolean> {
  if (text === 'true' || text === 'false') return { value: text === 'true' };
  return { problem: 'must be true or false' };
}

/** From a function that answers null for what it cannot read. @param problem completes "since …" */
export function readBy<T>(parse: (text: string) => T | null, problem: string): (text: string) => Reading<T> {
  return (text) => {
    const value = parse(text);
    return value === null ? { problem } : { value };
  };
}

const MICROS = /^\d{1,18}$/;
const ISO = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}))?$/;
/** The end of the year 9999. */
const MICROS_MAX = 253_402_300_799_999_999n;

/**
 * A moment as a filter takes it: microseconds since the epoch in digits, or ISO 8601 (a day is its UTC beginning, a
 * time of day needs its zone). Answers the digits, or null.
 */
export function microsFromText(text: string): string | null {
  if (MICROS.test(text)) return BigInt(text) <= MICROS_MAX ? String(BigInt(text)) : null;
  const [, day, time = '00:00', fraction = '', zone = 'Z'] = ISO.exec(text) ?? [];
  if (day === undefined || !isRealDay(day)) return null;
  const timeMs = Date.parse(`${day}T${time}${zone}`);
  if (Number.isNaN(timeMs) || timeMs < 0) return null;
  return String(BigInt(timeMs) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0')));
}

/** What completes "since …" for a text that is no moment. */
export const MOMENT_PROBLEM =
  'must be microseconds since the epoch, in digits, or an ISO 8601 time with its zone';

export const moment = readBy(microsFromText, MOMENT_PROBLEM);

/** Date would roll 30 February over. */
function isRealDay(day: string): boolean {
  const timeMs = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(day);
}
