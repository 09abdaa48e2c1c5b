import { type Problem, problemsOf, VALIDATION_OPTIONS } from '@runhook/contract';
import Joi from 'joi';
import { RECOVERABLE_STATUSES, type RecoverableStatus } from './recovery-view.ts';
import { MOMENT_PROBLEM, microsFromText } from './time-text.ts';

/** Body of `POST …/recover`, its times as microseconds since the epoch in digits. */
export interface RecoveryRequest {
  since: string;
  /** Omitted: the moment of the call. */
  until?: string;
  status: RecoverableStatus;
}

const moment = Joi.any().custom((value: unknown, helpers) => {
  const micros = typeof value === 'string' ? microsFromText(value) : null;
  return micros ?? helpers.message({ custom: `{{#label}} ${MOMENT_PROBLEM}` });
});

const schema = Joi.object<RecoveryRequest>({
  since: moment.required(),
  until: moment.empty(null),
  status: Joi.any()
    .empty(null)
    .valid(...RECOVERABLE_STATUSES)
    .default('failed'),
});

export function parseRecoveryRequest(
  body: unknown,
): { fields: RecoveryRequest; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: problemsOf(error, 'body') };
  if (value.until !== undefined && BigInt(value.until) <= BigInt(value.since))
    return { problems: [{ field: 'until', message: 'until must be later than since' }] };
  return { fields: value };
}
