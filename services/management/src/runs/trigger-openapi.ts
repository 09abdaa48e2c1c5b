import {
  nullable,
  type Operation,
  optionalReportedText,
  type Paths,
  type PropertiesOf,
  type RequestBody,
  requestObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import { parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { TRIGGERERS } from '../http/openapi/permissions.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { OPEN_REQUESTS_MAX } from './run-requests.ts';
import type { TriggerOptions } from './run-trigger.ts';
import { CANCELLED_EXAMPLE, RUNNING_EXAMPLE } from './schemas-openapi.ts';
import { TRIGGER_LIMITS } from './trigger-fields.ts';

const { causeCharactersMax, textCharactersMax, integerMax, stepsMax, stepCharactersMax } = TRIGGER_LIMITS;
const optionText = (description: string) => optionalReportedText(textCharactersMax, description);
const optionInteger = (minimum: number, description: string): Schema => ({
  type: ['integer', 'null'],
  minimum,
  maximum: integerMax,
  description,
});
const pullRequest = (service: string): Schema => ({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `The number of the change in ${service}.`,
});
/** Schema of a body that may be absent or null. */
export function optionalObject<T extends object>(description: string, properties: PropertiesOf<T>): Schema {
  return nullable(requestObject<T>(description, properties, []));
}

/** Schemas of the OpenAPI document; see docs/contract.md#triggered-runs. */
export const triggerSchemas: Record<string, Schema> = {
  TriggerOptions: optionalObject<TriggerOptions>(
    'Options of a run, which the runner gets. Those that are null or absent are unset; an unknown field that ends with `_override` is rejected.',
    {
      cause: optionalReportedText(causeCharactersMax, 'Why the run is triggered; `runReason` of its events.'),
      git_sha: optionText('The commit to check out.'),
      git_branch: optionText('The branch to check out.'),
      schema_override: optionText('Replaces the schema.'),
      dbt_version_override: optionText('Replaces the version of the engine.'),
      threads_override: optionInteger(1, 'Replaces the number of threads.'),
      target_name_override: optionText('Replaces the name of the target.'),
      generate_docs_override: {
        type: ['boolean', 'null'],
        description: 'Whether to generate documentation.',
      },
      timeout_seconds_override: optionInteger(0, 'Replaces the time limit.'),
      steps_override: {
        type: ['array', 'null'],
        items: { type: 'string', minLength: 1, maxLength: stepCharactersMax },
        maxItems: stepsMax,
        description: 'Replaces the commands of the job.',
      },
      github_pull_request_id: pullRequest('GitHub'),
      gitlab_merge_request_id: pullRequest('GitLab'),
      azure_pull_request_id: pullRequest('Azure DevOps'),
    },
  ),
};

const tags = ['Jobs and runs'];

export const QUEUED_EXAMPLE = {
  ...RUNNING_EXAMPLE,
  engine_version: null,
  dbt_version: null,
  status: 1,
  status_code: 1,
  status_humanized: 'Queued',
  is_running: false,
  started_at: null,
  dequeued_at: null,
};

/** A body that may be absent or null. */
export function optionalBody(schema: string, description: string, example: unknown): RequestBody {
  return { ...requestBody(schema, description, example), required: false };
}

const FULL = failureWithReason(
  409,
  'The account has too many triggered runs that have not ended.',
  `The account has ${OPEN_REQUESTS_MAX} triggered runs that have not ended, the maximum.`,
);

const triggered = (
  operation: Pick<Operation, 'operationId' | 'summary' | 'description' | 'requestBody'>,
) => ({
  post: withIdempotencyKey({
    ...operation,
    tags,
    description: `${operation.description} ${TRIGGERERS}`,
    responses: operationResponses(
      'runs',
      { 200: success(200, 'The run.', schemaRef('Run'), QUEUED_EXAMPLE), 409: FULL },
      BODY_FAILURES,
    ),
  }),
});

/** Paths of the OpenAPI document; see docs/contract.md#triggered-runs. */
export const triggerPaths: Paths = {
  '/api/v2/accounts/{account_id}/jobs/{job_id}/run': {
    parameters: [parameter('AccountId'), parameter('JobId')],
    ...triggered({
      operationId: 'triggerRun',
      summary: 'Trigger a run of a job',
      description: 'Queues a run, which a runner claims. Nothing is sent until it starts.',
      requestBody: optionalBody('TriggerOptions', 'Options of the run.', {
        cause: 'By hand',
        git_branch: 'main',
      }),
    }),
  },
  '/api/v2/accounts/{account_id}/jobs/{job_id}/rerun': {
    parameters: [parameter('AccountId'), parameter('JobId')],
    ...triggered({
      operationId: 'rerunJob',
      summary: 'Run a job again',
      description: 'Retries the latest run of the job if that failed, otherwise triggers the job.',
    }),
  },
  '/api/v2/accounts/{account_id}/runs/{run_id}/retry': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    ...triggered({
      operationId: 'retryRun',
      summary: 'Retry a run',
      description:
        'Queues a run with the options of one that failed or was cancelled; another one is a 409. `retry_of` of the new run names it.',
    }),
  },
  '/api/v2/accounts/{account_id}/runs/{run_id}/cancel': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'cancelRun',
      tags,
      summary: 'Cancel a run',
      description: `The run ends as cancelled at once, and a runner that waits with a heartbeat learns of it within a second. Sends nothing. A run that has ended is returned unchanged. ${TRIGGERERS}`,
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The run.', schemaRef('Run'), CANCELLED_EXAMPLE) },
        BODY_FAILURES,
      ),
    }),
  },
};
