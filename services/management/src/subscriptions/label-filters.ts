import { hasInvalidText, INVALID_TEXT_PROBLEM, LABEL_KEY, OPTION_LIMITS } from '@runhook/contract';
import type { ParseResult } from '../http/query-parameters.ts';

/** A filter of the list: a label with any value if `value` is null. */
export interface LabelFilter {
  key: string;
  value: string | null;
}

/** A key, `key:value`, or nothing. */
export const LABEL_FILTER = new RegExp(`^(?:${LABEL_KEY.source.slice(1, -1)}(?::[\\s\\S]*)?)?$`);

/** Reads `team` or `team:data` from each text. Forms send empty ones, which are no filter. */
export function labelFilters(texts: readonly string[]): ParseResult<LabelFilter[]> {
  if (!texts.every((text) => LABEL_FILTER.test(text)))
    return { problem: 'must be the key of a label, or key:value' };
  const filters = texts.filter((text) => text !== '').map(labelFilterOf);
  if (filters.length > OPTION_LIMITS.labelsMax)
    return { problem: `must not be repeated more than ${OPTION_LIMITS.labelsMax} times` };
  if (filters.some(({ value }) => value !== null && hasInvalidText(value)))
    return { problem: INVALID_TEXT_PROBLEM };
  return { value: filters };
}

function labelFilterOf(text: string): LabelFilter {
  const separator = text.indexOf(':');
  if (separator === -1) return { key: text, value: null };
  return { key: text.slice(0, separator), value: text.slice(separator + 1) };
}
