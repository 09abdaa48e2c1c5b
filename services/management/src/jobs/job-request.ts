import { integerId, nameText, type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import Joi from 'joi';
import {
  DEFINITION_FIELDS,
  DEFINITION_SCHEMAS,
  type DefinitionChanges,
  type StoredDefinition,
} from './definition.ts';

/** Limit of the names of a job, its project and its environment. */
export const JOB_NAME_CHARACTERS_MAX = 255;

/** Names a project or an environment by its id, its name or both. */
export interface ParentReference {
  id: number | undefined;
  name: string | undefined;
}

/** The fields that a body of `POST …/jobs/` or `POST …/jobs/{id}/` has (docs/contract.md#jobs). */
export interface JobRequest {
  name: string | undefined;
  project: ParentReference;
  environment: ParentReference;
  /** Whether `state` is that of a deleted job. */
  isDeleted: boolean;
  definition: DefinitionChanges;
}

/** Fields of a body as the OpenAPI document describes them; null in `StoredDefinition` fields counts as the default. */
export interface JobFields extends StoredDefinition {
  name: string;
  account_id: number;
  project_id: number | null;
  project_name: string;
  environment_id: number | null;
  environment_name: string;
  state: 1 | 2 | null;
}

type JobParsing = { request: JobRequest; problems?: never } | { request?: never; problems: Problem[] };

const name = nameText(JOB_NAME_CHARACTERS_MAX);
const id = integerId.empty(null);
const requiredWithout = (idField: string) =>
  name.when(idField, { is: Joi.exist(), otherwise: Joi.required() });

const parents = { project_id: id, environment_id: id };
const creation = {
  name: name.required(),
  ...parents,
  project_name: requiredWithout('project_id'),
  environment_name: requiredWithout('environment_id'),
  state: Joi.any().valid(1, null),
};
const update = {
  name,
  ...parents,
  project_name: name,
  environment_name: name,
  state: Joi.any().valid(1, 2, null),
};

/** Parses the body of a new job. Unknown fields are ignored, as are those that only responses have. */
export function parseNewJob(body: unknown, accountId: number): JobParsing {
  return parse(creation, body, { account_id: accountId });
}

/** Parses the body of a change; the response of a GET changes nothing. */
export function parseJobUpdate(body: unknown, accountId: number, jobId: number): JobParsing {
  return parse(update, body, { account_id: accountId, id: jobId });
}

/** @param path values of fields that the path has, too: a body may repeat them */
function parse(schemas: Joi.SchemaMap, body: unknown, path: Readonly<Record<string, number>>): JobParsing {
  const repeated = Object.entries(path).map(([field, value]) => [
    field,
    Joi.any()
      .valid(value, null)
      .messages({ 'any.only': `{{#label}} must be ${value}, as in the path` }),
  ]);
  const schema = Joi.object({ ...schemas, ...Object.fromEntries(repeated), ...DEFINITION_SCHEMAS });
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'body') } : { request: toRequest(value) };
}

function toRequest(fields: Partial<JobFields>): JobRequest {
  return {
    name: fields.name,
    project: { id: fields.project_id ?? undefined, name: fields.project_name },
    environment: { id: fields.environment_id ?? undefined, name: fields.environment_name },
    isDeleted: fields.state === 2,
    definition: Object.fromEntries(
      DEFINITION_FIELDS.flatMap((field) => (fields[field] === undefined ? [] : [[field, fields[field]]])),
    ),
  };
}
