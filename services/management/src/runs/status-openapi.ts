import { RUN_STATUSES, STORED_RUN_STATUSES } from '@runhook/contract';
import type { Schema } from '../http/openapi/field-schemas.ts';

export const STATUS_CODES = STORED_RUN_STATUSES.map((word) => RUN_STATUSES[word].code);

const STATUS_NAMES = STORED_RUN_STATUSES.map(
  (word) => `${RUN_STATUSES[word].code} ${RUN_STATUSES[word].humanized}`,
).join(', ');

/** The number of a status in a response. */
export function statusNumber(description: string): Schema {
  return { type: 'integer', enum: STATUS_CODES, description: `${description} ${STATUS_NAMES}.` };
}
