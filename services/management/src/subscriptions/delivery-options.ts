import { isDeepStrictEqual } from 'node:util';
import {
  type EventFilters,
  type EventFiltersView,
  filtersView,
  formatByName,
  formatOptionProblems,
  MASK,
  type Problem,
  type SubscriptionFields,
  unmatchableFilters,
} from '@runhook/contract';
import { type SecretBox, SecretBoxError } from '@runhook/database';
import { Prisma } from '@runhook/database/prisma';
import { InvalidRequestError } from '../http/errors.ts';
import { isNewOrigin, NEW_ORIGIN_PROBLEM, NOT_STORED_PROBLEM } from './custom-headers.ts';

/** Columns of the options in responses (docs/contract.md#delivery-options). */
export const OPTION_COLUMNS = {
  format: true,
  formatOptionNames: true,
  filters: true,
  ordered: true,
  rateLimit: true,
  labels: true,
  deactivateOn410: true,
} satisfies Prisma.SubscriptionSelect;

type OptionRow = Prisma.SubscriptionGetPayload<{ select: typeof OPTION_COLUMNS }>;
type StoredOptions = OptionRow & { clientUrl: string; formatOptionsCiphertext: string | null };

/** The options in responses. Each is absent unless it is set, so that other webhooks respond as before. */
export interface OptionsView {
  format?: string;
  /** Every value is masked. */
  format_options?: Record<string, string>;
  filters?: EventFiltersView;
  ordered?: true;
  /** Requests per second. */
  rate_limit?: number;
  labels?: Record<string, string>;
  deactivate_on_410?: true;
}

export function optionsView(row: OptionRow): OptionsView {
  const { format, formatOptionNames, ordered, rateLimit, deactivateOn410 } = row;
  const filters = filtersView(row.filters as EventFilters | null);
  return {
    ...(format !== null && { format }),
    ...(formatOptionNames.length > 0 && { format_options: maskAll(formatOptionNames) }),
    ...(filters !== null && { filters }),
    ...(ordered && { ordered }),
    ...(rateLimit !== null && { rate_limit: rateLimit }),
    ...(row.labels !== null && { labels: row.labels as Record<string, string> }),
    ...(deactivateOn410 && { deactivate_on_410: deactivateOn410 }),
  };
}

function maskAll(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, MASK]));
}

type JsonColumn = Prisma.InputJsonObject | typeof Prisma.DbNull;

/** Columns of the options that a request changes; omitted ones keep their value. */
export interface OptionColumns {
  format?: string | null;
  formatOptionNames?: string[];
  formatOptionsCiphertext?: string | null;
  filters?: JsonColumn;
  ordered?: boolean;
  rateLimit?: number | null;
  labels?: JsonColumn;
  deactivateOn410?: boolean;
}

/**
 * Returns the columns that a create or an update changes. Throws a 400 that names each invalid option.
 * @param stored null on a create
 */
export function optionColumns(
  requested: SubscriptionFields,
  stored: StoredOptions | null,
  secrets: SecretBox,
): OptionColumns {
  const { format, filters, ordered, rate_limit: rateLimit, labels, deactivate_on_410: on410 } = requested;
  const problems: Problem[] = [];
  const columns: OptionColumns = {
    ...(format !== undefined && { format }),
    ...formatOptionColumns(requested, stored, secrets, problems),
    ...(filters !== undefined && { filters: jsonColumn(filters) }),
    ...(ordered !== undefined && { ordered: ordered ?? false }),
    ...(rateLimit !== undefined && { rateLimit }),
    ...(labels !== undefined && { labels: jsonColumn(labels) }),
    ...(on410 !== undefined && { deactivateOn410: on410 ?? false }),
  };
  const newFilters = filters === undefined ? (stored?.filters as EventFilters | null | undefined) : filters;
  const filterProblem = unmatchableFilters(requested.event_types, newFilters);
  if (filterProblem !== null) problems.push({ field: 'filters', message: `filters ${filterProblem}` });
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return columns;
}

/** Returns the options of a copy, with the values of the format's options. */
export function copiedOptions(original: StoredOptions): OptionColumns {
  const { format, formatOptionNames, formatOptionsCiphertext, ordered, rateLimit, deactivateOn410 } =
    original;
  return {
    format,
    formatOptionNames,
    formatOptionsCiphertext,
    filters: jsonColumn(original.filters as object | null),
    ordered,
    rateLimit,
    labels: jsonColumn(original.labels as object | null),
    deactivateOn410,
  };
}

/**
 * Returns the names of the options that the columns set to another value than the stored one, and that only dispatchers
 * of this release support.
 */
export function newlySetOptions(columns: OptionColumns, stored: StoredOptions | null): string[] {
  const { format, formatOptionsCiphertext, filters, ordered, rateLimit, deactivateOn410 } = columns;
  const isNewFilter = filters !== undefined && filters !== Prisma.DbNull;
  const setOptions: [name: string, isSet: boolean][] = [
    ['format', format != null && format !== stored?.format],
    ['format_options', formatOptionsCiphertext != null],
    ['filters', isNewFilter && !isDeepStrictEqual(filters, stored?.filters)],
    ['ordered', ordered === true && stored?.ordered !== true],
    ['rate_limit', rateLimit != null && rateLimit !== stored?.rateLimit],
    ['deactivate_on_410', deactivateOn410 === true && stored?.deactivateOn410 !== true],
  ];
  return setOptions.flatMap(([name, isSet]) => (isSet ? [name] : []));
}

function jsonColumn(value: object | null): JsonColumn {
  return value === null ? Prisma.DbNull : (value as Prisma.InputJsonObject);
}

/**
 * Returns the columns of `format_options`. An option whose value is the mask keeps its value, and so do all if the
 * request omits them, unless it changes the format that they belong to.
 */
function formatOptionColumns(
  requested: SubscriptionFields,
  stored: StoredOptions | null,
  secrets: SecretBox,
  problems: Problem[],
): Pick<OptionColumns, 'formatOptionNames' | 'formatOptionsCiphertext'> {
  const { client_url: clientUrl, format_options: options } = requested;
  const formatName = requested.format === undefined ? (stored?.format ?? null) : requested.format;
  const hasSameFormat = stored !== null && formatName === stored.format;
  const hasNewOrigin = isNewOrigin(clientUrl, stored);
  const reject = (field: string, problem: string) => problems.push({ field, message: `${field} ${problem}` });

  if (options === undefined && hasSameFormat) {
    if (stored.formatOptionsCiphertext !== null && hasNewOrigin) reject('format_options', NEW_ORIGIN_PROBLEM);
    return {};
  }
  const storedValues = hasSameFormat ? decryptFormatOptions(stored, secrets) : {};
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(options ?? {})) {
    const storedValue = value === MASK ? storedValues[name] : value;
    if (storedValue === undefined) reject(`format_options.${name}`, NOT_STORED_PROBLEM);
    else if (value === MASK && hasNewOrigin) reject(`format_options.${name}`, NEW_ORIGIN_PROBLEM);
    else values[name] = storedValue;
  }
  const format = formatByName(formatName);
  // A mask that was rejected must not be reported as missing as well.
  if (format !== null && problems.length === 0) problems.push(...formatOptionProblems(format, values));
  if (hasSameFormat && isUnchanged(options, stored.formatOptionNames)) return {};
  const names = Object.keys(values);
  if (names.length > 0)
    return { formatOptionNames: names, formatOptionsCiphertext: secrets.encrypt(JSON.stringify(values)) };
  return stored === null || stored.formatOptionNames.length === 0
    ? {}
    : { formatOptionNames: [], formatOptionsCiphertext: null };
}

/** Whether the options of a request are those of the response, all masked. */
function isUnchanged(options: Record<string, string> | null | undefined, names: readonly string[]): boolean {
  const entries = Object.entries(options ?? {});
  return (
    entries.every(([name, value]) => value === MASK && names.includes(name)) &&
    entries.length === names.length
  );
}

/** Returns the values of the options; none if they cannot be decrypted. */
export function decryptFormatOptions(
  { formatOptionsCiphertext }: Pick<StoredOptions, 'formatOptionsCiphertext'>,
  secrets: SecretBox,
): Record<string, string> {
  if (formatOptionsCiphertext === null) return {};
  try {
    return JSON.parse(secrets.decrypt(formatOptionsCiphertext));
  } catch (error) {
    if (error instanceof SecretBoxError) return {};
    throw error;
  }
}
