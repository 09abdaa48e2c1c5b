import { WAIT_SECONDS_MAX } from '../http/long-poll.ts';
import {
  integerId,
  optionalReportedText,
  type Paths,
  requestObject,
  requiredReportedText,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { PARAMETERS, parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { REPORTERS } from '../http/openapi/permissions.ts';
import { BODY_FAILURES, leaseConflict, operationResponses, success } from '../http/openapi/responses.ts';
import {
  CLAIM_JOBS_MAX,
  type ClaimFields,
  type ClaimResponse,
  type HeartbeatFields,
  type HeartbeatResponse,
} from './claim-routes.ts';
import { RUN_LIMITS, type RunBegin } from './routes.ts';
import { RUNNER_CHARACTERS_MAX } from './run-requests.ts';
import { RUNNING_EXAMPLE, timeOfCallByDefault } from './schemas-openapi.ts';
import { optionalBody, optionalObject, QUEUED_EXAMPLE } from './trigger-openapi.ts';

const waitSchema = (description: string): Schema => ({
  type: ['integer', 'null'],
  minimum: 0,
  maximum: WAIT_SECONDS_MAX,
  description: `Seconds to wait ${description}. Default: 0.`,
});

const LEASE_TIME: Schema = {
  type: 'string',
  format: 'date-time',
  description: 'When the lease expires unless it is renewed, in ISO 8601 UTC with microseconds.',
};

/** Schemas of the OpenAPI document; see docs/contract.md#triggered-runs. */
export const claimSchemas: Record<string, Schema> = {
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
      started_at: timeOfCallByDefault('When it started.'),
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

const LEASE_EXAMPLE = {
  lease_token: 'V6Zq3cJ0n1x8p5R2bT7yW4dK9mF0aS6hQ1uL8eG3vXo',
  lease_expires_at: '2026-11-20T09:59:26.000000Z',
};

const LEASE_LOST_MESSAGE = 'The lease of this run has ended: another runner may have claimed it.';
const LEASE_LOST = leaseConflict(
  'The run has ended, or another runner has claimed it since.',
  LEASE_LOST_MESSAGE,
);

/** Paths of the OpenAPI document; see docs/contract.md#triggered-runs. */
export const claimPaths: Paths = {
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
          409: leaseConflict('The token is not that of the last claim of the run.', LEASE_LOST_MESSAGE),
        },
        BODY_FAILURES,
      ),
    }),
  },
};
