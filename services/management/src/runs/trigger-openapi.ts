import { WAIT_SECONDS_MAX } from '../http/long-poll.ts';
import {
  integerId,
  nullable,
  type Operation,
  optionalReportedText,
  type Paths,
  type PropertiesOf,
  type RequestBody,
  requestObject,
  requiredReportedText,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { PARAMETERS, parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { REPORTERS, TRIGGERERS } from '../http/openapi/permissions.ts';
import {
  BODY_FAILURES,
  failureWithReason,
  leaseConflict,
  operationResponses,
  success,
} from '../http/openapi/responses.ts';
import {
  CLAIM_JOBS_MAX,
  type ClaimFields,
  type ClaimResponse,
  type HeartbeatFields,
  type HeartbeatResponse,
} from './claim-routes.ts';
import { RUN_LIMITS, type RunBegin } from './routes.ts';
import { OPEN_REQUESTS_MAX, RUNNER_CHARACTERS_MAX } from './run-requests.ts';
import type { TriggerOptions } from './run-trigger.ts';
import { RUNNING_EXAMPLE, reportedTime } from './schemas-openapi.ts';
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
const waitSchema = (description: string): Schema => ({
  type: ['integer', 'null'],
  minimum: 0,
  maximum: WAIT_SECONDS_MAX,
  description: `Seconds to wait ${description}. Default: 0.`,
});

/** Schema of a body that may be absent or null. */
function optionalObject<T extends object>(description: string, properties: PropertiesOf<T>): Schema {
  return nullable(requestObject<T>(description, properties, []));
}

const LEASE_TIME: Schema = {
  type: 'string',
  format: 'date-time',
  description: 'When the lease expires unless it is renewed, in ISO 8601 UTC with microseconds.',
};

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

  RunClaim: optionalObject<ClaimFields>('The runs that a runner takes.', {
    job_ids: {
      type: ['array', 'null'],
      items: integerId('Id of a job.', 12),
      minItems: 1,
      maxItems: CLAIM_JOBS_MAX,
      description: 'Only runs of these jobs.',
    },
    run_id: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only this run, as from a job of the queue.',
    },
    runner: optionalReportedText(RUNNER_CHARACTERS_MAX, 'Name of the runner, for people.'),
    wait: waitSchema('for a run'),
  }),

  ClaimedRun: responseObject<ClaimResponse>('A run that the caller has claimed.', {
    run: schemaRef('Run'),
    execute_steps: {
      type: 'array',
      items: { type: 'string' },
      description: 'The commands to execute: those of the trigger, otherwise those of the job; may be empty.',
    },
    lease_token: text('Value of `Lease-Token` in the reports of this runner.'),
    lease_expires_at: LEASE_TIME,
    attempt: { type: 'integer', minimum: 1, description: 'Number of claims of the run, this one included.' },
  }),

  RunBegin: requestObject<RunBegin>(
    'The start of a triggered run.',
    {
      engine_version: requiredReportedText(
        RUN_LIMITS.engineVersionCharactersMax,
        'Version of the engine that runs the job.',
      ),
      started_at: reportedTime('When it started.'),
    },
    ['engine_version'],
  ),

  RunHeartbeat: optionalObject<HeartbeatFields>('A renewal of a lease.', {
    wait: waitSchema('for the end of the run, as by a cancel'),
  }),

  Heartbeat: responseObject<HeartbeatResponse>('A renewed lease.', {
    run: schemaRef('Run'),
    lease_expires_at: LEASE_TIME,
  }),
};

const tags = ['Jobs and runs'];

const QUEUED_EXAMPLE = {
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

const LEASE_EXAMPLE = {
  lease_token: 'V6Zq3cJ0n1x8p5R2bT7yW4dK9mF0aS6hQ1uL8eG3vXo',
  lease_expires_at: '2026-11-20T09:59:26.000000Z',
};

/** A body that may be absent or null. */
function optionalBody(schema: string, description: string, example: unknown): RequestBody {
  return { ...requestBody(schema, description, example), required: false };
}

const LEASE_LOST = leaseConflict(
  'The run has ended, or another runner has claimed it since.',
  'The lease of this run has ended: another runner may have claimed it.',
);
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
      description: `The run ends as cancelled at once, and its runner learns of it within a second. Sends nothing. A run that has ended is returned unchanged. ${TRIGGERERS}`,
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The run.', schemaRef('Run'), RUNNING_EXAMPLE) },
        BODY_FAILURES,
      ),
    }),
  },
  '/api/v2/accounts/{account_id}/runs/claim': {
    parameters: [parameter('AccountId')],
    post: withIdempotencyKey({
      operationId: 'claimRun',
      tags,
      summary: 'Claim a triggered run',
      description: `Leases the oldest run to the caller that no runner has. A lease lasts a minute from its last renewal; then another runner may claim the run. ${REPORTERS}`,
      requestBody: optionalBody('RunClaim', 'The runs that the runner takes.', {
        wait: 25,
        runner: 'runner-1',
      }),
      responses: operationResponses(
        'runs',
        {
          200: success(
            200,
            'The run; null if there is none.',
            {
              anyOf: [schemaRef('ClaimedRun'), { type: 'null' }],
              description: 'The claimed run; null if there is none.',
            },
            {
              run: { ...QUEUED_EXAMPLE, status: 2, status_code: 2, status_humanized: 'Starting' },
              execute_steps: ['dbt build'],
              ...LEASE_EXAMPLE,
              attempt: 1,
            },
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
  '/api/v2/accounts/{account_id}/runs/{run_id}/start': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'beginRun',
      tags,
      summary: 'Start a triggered run',
      description: `Sends \`job.run.started\`. For a run that has started, as after the lease of another runner, sends nothing. ${REPORTERS}`,
      parameters: [parameter('LeaseToken')],
      requestBody: requestBody('RunBegin', 'The start.', { engine_version: '1.9.2' }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The run is running.', schemaRef('Run'), RUNNING_EXAMPLE),
          409: LEASE_LOST,
        },
        BODY_FAILURES,
      ),
    }),
  },
  '/api/v2/accounts/{account_id}/runs/{run_id}/heartbeat': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'renewLease',
      tags,
      summary: 'Renew the lease of a run',
      description: `With \`wait\`, the response comes when the run has ended, as by a cancel, or after that time. ${REPORTERS}`,
      parameters: [{ ...PARAMETERS.LeaseToken, required: true }],
      requestBody: optionalBody('RunHeartbeat', 'How long to wait.', { wait: 20 }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The lease is renewed.', schemaRef('Heartbeat'), {
            run: RUNNING_EXAMPLE,
            lease_expires_at: LEASE_EXAMPLE.lease_expires_at,
          }),
          409: LEASE_LOST,
        },
        BODY_FAILURES,
      ),
    }),
  },
};
