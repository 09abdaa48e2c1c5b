import {
  EVENT_LIMITS,
  isIntegerId,
  nanosecondTimestamp,
  type Problem,
  problemsOf,
  textWithoutNul,
  VALIDATION_OPTIONS,
} from '@runhook/contract';
import Joi from 'joi';
import { FINISH_STATUSES, type FinishStatus } from './run-transitions.ts';

/** What a report of a run may hold at most. */
export const RUN_LIMITS = {
  engineVersionCharactersMax: 255,
  /** Of `reason` and `status_message`: a payload takes no longer one. */
  messageCharactersMax: EVENT_LIMITS.messageCharactersMax,
} as const;

/** Body of `POST …/runs/`. Times are ISO 8601 UTC in seconds with `Z`. */
export interface RunStart {
  job_id: number;
  run_id?: number;
  reason?: string;
  engine_version: string;
  started_at?: string;
}

/** Body of `POST …/runs/{run_id}/finish/`. */
export interface RunFinish {
  status: FinishStatus;
  status_message?: string;
  finished_at?: string;
}

export type RunRequestParsing<Fields> =
  | { fields: Fields; problems?: never }
  | { fields?: never; problems: Problem[] };

const integerId = Joi.any().custom((value: unknown, helpers) =>
  isIntegerId(value) ? value : helpers.message({ custom: '{{#label}} must be a positive integer' }),
);

/** Absent, null and "" are the same: no text. */
const optionalText = textWithoutNul(RUN_LIMITS.messageCharactersMax).empty(Joi.valid(null, ''));

/** A finer time than seconds is cut, not rounded: a run must not start in the future. */
const secondsTime = Joi.string()
  .empty(null)
  .custom((text: string, helpers) => {
    const time = nanosecondTimestamp(text);
    // PostgreSQL's calendar has no year 0.
    if (time === null || time.startsWith('0000')) {
      return helpers.message({ custom: '{{#label}} must be a UTC time like 2026-01-31T23:59:59Z' });
    }
    return `${time.slice(0, 19)}Z`;
  });

const startSchema = Joi.object<RunStart>({
  job_id: integerId.required(),
  run_id: integerId.empty(null),
  reason: optionalText,
  engine_version: textWithoutNul(RUN_LIMITS.engineVersionCharactersMax).required(),
  started_at: secondsTime,
});

const finishSchema = Joi.object<RunFinish>({
  status: Joi.string()
    .valid(...FINISH_STATUSES)
    .required(),
  status_message: optionalText,
  finished_at: secondsTime,
});

export function parseRunStart(body: unknown): RunRequestParsing<RunStart> {
  return parse(startSchema, body);
}

export function parseRunFinish(body: unknown): RunRequestParsing<RunFinish> {
  return parse(finishSchema, body);
}

function parse<Fields>(schema: Joi.ObjectSchema<Fields>, body: unknown): RunRequestParsing<Fields> {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'body') } : { fields: value };
}
