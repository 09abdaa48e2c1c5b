import { integerId, reportedText } from '@runhook/contract';
import Joi from 'joi';
import { parseBody } from '../http/parse-body.ts';
import { RUN_LIMITS } from './routes.ts';
import type { TriggerOptions } from './run-trigger.ts';

/** Limits of the options of a triggered run. */
export const TRIGGER_LIMITS = {
  causeCharactersMax: RUN_LIMITS.messageCharactersMax,
  textCharactersMax: 255,
  stepsMax: 100,
  stepCharactersMax: 4_096,
  integerMax: 2 ** 31 - 1,
} as const;

const text = (maxCharacters: number) => reportedText(maxCharacters).empty(Joi.valid(null, ''));
const name = text(TRIGGER_LIMITS.textCharactersMax);
const count = (min: number) => Joi.number().integer().min(min).max(TRIGGER_LIMITS.integerMax).empty(null);
const id = integerId.empty(null);

const OPTIONS: { [Option in keyof Required<TriggerOptions>]: Joi.Schema } = {
  cause: text(TRIGGER_LIMITS.causeCharactersMax),
  git_sha: name,
  git_branch: name,
  schema_override: name,
  dbt_version_override: name,
  threads_override: count(1),
  target_name_override: name,
  generate_docs_override: Joi.boolean().empty(null),
  timeout_seconds_override: count(0),
  steps_override: Joi.array()
    .items(reportedText(TRIGGER_LIMITS.stepCharactersMax))
    .max(TRIGGER_LIMITS.stepsMax)
    .empty(Joi.valid(null)),
  github_pull_request_id: id,
  gitlab_merge_request_id: id,
  azure_pull_request_id: id,
};

// An override that does not exist here would otherwise be ignored, and the run would do something else than intended.
const schema = Joi.object<TriggerOptions>(OPTIONS).pattern(
  /_override$/,
  Joi.any().custom((value: unknown, helpers) =>
    value === null ? undefined : helpers.message({ custom: '{{#label}} is not an override of this service' }),
  ),
);

/** Reads the body of `POST …/jobs/{id}/run/`; no body and null count as {}. Options that are null are absent. */
export function parseTrigger(body: unknown): TriggerOptions {
  return parseBody(schema, body ?? {});
}
