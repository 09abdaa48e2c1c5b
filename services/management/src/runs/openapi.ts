import { RUN_STATUS_CODES } from '@runhook/contract';
import {
  integerId,
  nullable,
  optionalReportedText,
  type Paths,
  requestObject,
  requiredReportedText,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  requestBody,
  searchParameter,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { RUN_LIMITS, type RunFinish, type RunStart, type RunView } from './routes.ts';
import { RUN_ORDERS, RUNS_COUNT_MAX, RUNS_SEARCHED_MAX } from './statements.ts';
import { FINISH_STATUSES } from './transitions.ts';

export const RUNNING_EXAMPLE: RunView = {
  id: 345,
  account_id: 1,
  job_id: 12,
  job_definition_id: 12,
  job_name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
  engine_version: '1.9.0',
  status: 'Running',
  status_code: 3,
  status_message: null,
  reason: 'Scheduled',
  started_at: '2026-11-20T09:58:26Z',
  finished_at: null,
  errored_at: null,
  artifacts_ingested_at: null,
};

const ERRORED_EXAMPLE: RunView = {
  ...RUNNING_EXAMPLE,
  status: 'Errored',
  status_code: 20,
  status_message: 'Two models failed',
  finished_at: '2026-11-20T10:00:00Z',
  errored_at: '2026-11-20T10:00:00Z',
};

const INGESTED_EXAMPLE: RunView = {
  ...ERRORED_EXAMPLE,
  artifacts_ingested_at: '2026-11-20T10:00:05Z',
};

const CODES = Object.entries(RUN_STATUS_CODES);

const RUN_STATUS: Schema = {
  type: 'string',
  enum: CODES.map(([status]) => status),
  description: 'The status of the run.',
};

/** Schema of a time in a report: the format of responses, null, or a time with a fraction, which is truncated. */
export function reportedTime(description: string): Schema {
  return {
    type: ['string', 'null'],
    format: 'date-time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|\\+00:00)$',
    description: `${description} ISO 8601 UTC; fractions of a second are truncated. Default (also null): the time of the call.`,
    examples: ['2026-11-20T10:00:00Z'],
  };
}

/** Schemas of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
export const runSchemas: Record<string, Schema> = {
  Run: responseObject<RunView>('A run of a job. Names are those at its start.', {
    id: integerId('Id of the run, unique in its account.', 345),
    account_id: integerId('The account.', 1),
    job_id: integerId('The job.', 12),
    job_definition_id: integerId('The job, under the name that other clients use.', 12),
    job_name: text('Name of the job.'),
    project_id: integerId('Id of the project.', 3),
    project_name: text('Name of the project.'),
    environment_id: integerId('Id of the environment.', 4),
    environment_name: text('Name of the environment.'),
    engine_version: text('Version of the engine that runs the job.'),
    status: RUN_STATUS,
    status_code: {
      type: 'integer',
      enum: CODES.map(([, code]) => code),
      description: `The status as a number: ${CODES.map(([status, code]) => `${status} ${code}`).join(', ')}.`,
    },
    status_message: {
      type: ['string', 'null'],
      description: 'The message of the job runner about the end; null without one.',
    },
    reason: { type: ['string', 'null'], description: 'Why the run was started; null if not reported.' },
    started_at: secondsTime('When it started.'),
    finished_at: nullable(secondsTime('When it ended, whatever its status; null while it is running.')),
    errored_at: nullable(secondsTime('When it failed; null if it did not.')),
    artifacts_ingested_at: nullable(
      secondsTime('When its artifacts were reported as ingested; null before.'),
    ),
  }),

  RunStart: requestObject<RunStart>(
    'The start of a run.',
    {
      job_id: integerId('The job, which must belong to the account.', 12),
      run_id: nullable(
        integerId('The job runner’s own number of the run. Default (also null): a generated number.', 345),
      ),
      reason: optionalReportedText(RUN_LIMITS.messageCharactersMax, 'Why the run was started, in free text.'),
      engine_version: requiredReportedText(
        RUN_LIMITS.engineVersionCharactersMax,
        'Version of the engine that runs the job.',
      ),
      started_at: reportedTime('When it started.'),
    },
    ['job_id', 'engine_version'],
  ),

  RunFinish: requestObject<RunFinish>(
    'The end of a run.',
    {
      status: { type: 'string', enum: FINISH_STATUSES, description: 'The final status.' },
      status_message: optionalReportedText(RUN_LIMITS.messageCharactersMax, 'A message about the status.'),
      finished_at: reportedTime('When it ended.'),
    },
    ['status'],
  ),
};

const tags = ['Jobs and runs'];

const REPORTERS =
  'Requires one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.';

const { job_id, id: run_id, reason, engine_version, started_at } = RUNNING_EXAMPLE;
const { status_message, finished_at } = ERRORED_EXAMPLE;

/** Paths of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
export const runPaths: Paths = {
  '/api/v2/accounts/{account_id}/runs': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listRuns',
      tags,
      summary: 'List the runs of an account',
      description: `Newest first. \`total_count\` stops at ${RUNS_COUNT_MAX}.`,
      parameters: [
        queryParameter('job_id', 'Only runs of this job.', integerId('Id of the job.', 12)),
        queryParameter('job_definition_id', 'The same as `job_id`.', integerId('Id of the job.', 12)),
        queryParameter('project_id', 'Only runs of this project.', integerId('Id of the project.', 3)),
        queryParameter(
          'environment_id',
          'Only runs in this environment.',
          integerId('Id of the environment.', 4),
        ),
        queryParameter('status', 'Only runs in this status, by its name or number.', {
          type: 'string',
          enum: CODES.flatMap(([status, code]) => [status, String(code)]),
        }),
        orderParameter(
          RUN_ORDERS,
          `Default: newest first. By \`started_at\` and \`finished_at\`, the newest ${RUNS_SEARCHED_MAX} matches are sorted; unfinished runs come last.`,
        ),
        searchParameter(
          `in the name of their job (of the newest ${RUNS_SEARCHED_MAX} matches of the other filters), or the run of that id`,
        ),
        queryParameter(
          'since',
          `Only runs that started at or after this time. ${TIMESTAMP_FORMATS}`,
          TIMESTAMP,
        ),
        queryParameter('until', `Only runs that started before this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
        ...PAGE,
      ],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'A page of runs.', schemaRef('Run'), RUNNING_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'startRun',
      tags,
      summary: 'Report that a run has started',
      description: `Sends \`job.run.started\`. A job runner that supplies the run’s number may repeat the call: the response is 200 with the same run, and nothing is sent. ${REPORTERS}`,
      requestBody: requestBody('RunStart', 'The run.', {
        job_id,
        run_id,
        reason,
        engine_version,
        started_at,
      }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The run with that number already exists.', schemaRef('Run'), RUNNING_EXAMPLE),
          201: success(201, 'The start is recorded.', schemaRef('Run'), RUNNING_EXAMPLE),
          409: failureWithReason(
            409,
            'The run with that number belongs to another job.',
            'Run 345 belongs to another job.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'getRun',
      tags,
      summary: 'Get a run',
      description: 'As reported so far by its runner.',
      responses: operationResponses('runs', {
        200: success(200, 'The run.', schemaRef('Run'), ERRORED_EXAMPLE),
      }),
    },
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/finish': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'finishRun',
      tags,
      summary: 'Report how a run ended',
      description: `An errored run sends \`job.run.errored\` at once; \`job.run.completed\` follows when the artifacts are ingested. A cancelled run sends nothing. A repeat with the same status changes nothing. ${REPORTERS}`,
      requestBody: requestBody('RunFinish', 'The end of the run.', {
        status: 'errored',
        status_message,
        finished_at,
      }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The end is recorded.', schemaRef('Run'), ERRORED_EXAMPLE),
          409: failureWithReason(
            409,
            'The run has already ended with another status.',
            'The run has ended as Success and cannot end as Errored.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/artifacts': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'reportArtifacts',
      tags,
      summary: 'Report that the artifacts of a run are ingested',
      description: `Sends \`job.run.completed\` once the run has finished as well, in either order; not for a cancelled run. No request body. A repeat changes nothing. ${REPORTERS}`,
      responses: operationResponses(
        'runs',
        {
          200: success(
            200,
            'The ingestion of the artifacts is recorded.',
            schemaRef('Run'),
            INGESTED_EXAMPLE,
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
};
