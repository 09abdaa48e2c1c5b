import { type Problem, problemsOf, textWithoutNul, VALIDATION_OPTIONS } from '@runhook/contract';
import Joi from 'joi';

/** Of a job's name, its project's and its environment's. */
export const JOB_NAME_CHARACTERS_MAX = 255;

/** Body of `POST …/jobs/` (DESIGN, section 4, "Runs API"). */
export interface JobFields {
  name: string;
  project_name: string;
  environment_name: string;
}

const schema = Joi.object<JobFields>({
  name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
  project_name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
  environment_name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
});

export type JobParsing = { fields: JobFields; problems?: never } | { fields?: never; problems: Problem[] };

export function parseJob(body: unknown): JobParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'body') } : { fields: value };
}
