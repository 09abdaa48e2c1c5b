import type { Schema } from '../openapi-types.ts';

/** A moment as requests tell it. */
export const MOMENT: Schema = {
  type: 'string',
  examples: ['1795168800000000', '2026-11-20', '2026-11-20T10:00:00Z'],
};

export const MOMENT_FORMS =
  'Microseconds since the epoch in digits, or ISO 8601: a day, which is its beginning in UTC, or a time with its zone.';
