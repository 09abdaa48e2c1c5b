import Joi from 'joi';
import { integerIdFromText, isIntegerId } from './field-problems.ts';
import { type EventFilters, FILTER_LIMITS, FILTER_NAMES, FILTER_RUN_STATUSES } from './filters.ts';

/**
 * The `filters` of a request: null, or an object whose members are arrays of integers and digit strings, a single one of
 * either, or null. Yields {@link EventFilters} without empty members, null if none is left, undefined if omitted. An
 * unknown member is rejected: ignoring a misspelt filter would send more than the subscriber asked for. The caller
 * checks `unmatchableFilters` with the event types that the subscription will have.
 */
export const filtersSchema = Joi.object<EventFilters>({
  run_statuses: idList({
    isAllowed: (value) => FILTER_RUN_STATUSES.some((status) => status === value),
    message: `must be ${FILTER_RUN_STATUSES.slice(0, -1).join(', ')} or ${FILTER_RUN_STATUSES.at(-1)}`,
    max: FILTER_RUN_STATUSES.length,
  }),
  environment_ids: idList({
    isAllowed: isIntegerId,
    message: 'must be integers that are ids of environments',
    max: FILTER_LIMITS.environmentIdsMax,
  }),
  project_ids: idList({
    isAllowed: isIntegerId,
    message: 'must be integers that are ids of projects',
    max: FILTER_LIMITS.projectIdsMax,
  }),
})
  .options({ stripUnknown: false, allowUnknown: false })
  .messages({ 'object.unknown': `{{#label}} is not a filter: they are ${FILTER_NAMES.join(', ')}` })
  .allow(null)
  .custom((filters: EventFilters | null) =>
    filters === null || Object.keys(filters).length === 0 ? null : filters,
  );

interface IdListRule {
  isAllowed: (value: number) => boolean;
  /** Completes "filters.environment_ids …". */
  message: string;
  max: number;
}

/** Yields undefined, which Joi omits from the object, for an empty list. */
function idList({ isAllowed, message, max }: IdListRule): Joi.Schema {
  return Joi.any().custom((value: unknown, helpers) => {
    const items = value === null ? [] : Array.isArray(value) ? value : [value];
    const ids = new Set<number>();
    for (const item of items) {
      const id = typeof item === 'string' ? integerIdFromText(item) : isIntegerId(item) ? item : null;
      if (id === null || !isAllowed(id)) return helpers.message({ custom: `{{#label}} ${message}` });
      ids.add(id);
    }
    if (ids.size > max) return helpers.message({ custom: `{{#label}} must not name more than ${max}` });
    return ids.size === 0 ? undefined : [...ids];
  });
}
