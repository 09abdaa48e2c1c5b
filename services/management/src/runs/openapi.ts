import { RUN_STATUSES, STORED_RUN_STATUSES } from '@runhook/contract';
import { listArtifacts } from '../artifacts/openapi.ts';
import {
  integerId,
  type Paths,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
} from '../http/openapi/field-schemas.ts';
import {
  accountParameter,
  ID_ITEM,
  listParameter,
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  rangeParameter,
  relatedParameter,
  requestBody,
  searchParameter,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { REPORTERS } from '../http/openapi/permissions.ts';
import {
  BODY_FAILURES,
  failureWithReason,
  leaseConflict,
  operationResponses,
  success,
} from '../http/openapi/responses.ts';
import { RUN_ORDERS, RUNS_COUNT_MAX, RUNS_SEARCHED_MAX } from './list-runs.ts';
import { RUN_RELATED } from './run-response.ts';
import { ERRORED, ERRORED_EXAMPLE, INGESTED_EXAMPLE, RUNNING, RUNNING_EXAMPLE } from './schemas-openapi.ts';

const STATUS_TEXTS = [
  ...new Set(
    STORED_RUN_STATUSES.flatMap((word) => [
      String(RUN_STATUSES[word].code),
      word,
      RUN_STATUSES[word].humanized,
    ]),
  ),
];

const tags = ['Jobs and runs'];

const { job_id, id: run_id, reason, engine_version, started_at } = RUNNING;
const { status_message, finished_at } = ERRORED;

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
        listParameter('id__in', 'Only these runs.', '[345,346]', ID_ITEM),
        queryParameter('job_id', 'Only runs of this job.', integerId('Id of the job.', 12)),
        queryParameter('job_definition_id', 'The same as `job_id`.', integerId('Id of the job.', 12)),
        queryParameter('project_id', 'Only runs of this project.', integerId('Id of the project.', 3)),
        listParameter('project_id__in', 'Only runs of these projects.', '[3]', ID_ITEM),
        queryParameter(
          'environment_id',
          'Only runs in this environment.',
          integerId('Id of the environment.', 4),
        ),
        listParameter('environment_id__in', 'Only runs in these environments.', '[4]', ID_ITEM),
        queryParameter('status', 'Only runs in this status, by its number or a word in any case.', {
          type: 'string',
          enum: STATUS_TEXTS,
        }),
        listParameter(
          'status__in',
          'Only runs in these statuses, as of `status`.',
          '[10,20]',
          STATUS_TEXTS.join('|'),
        ),
        queryParameter(
          'deferring_run_id',
          'Only runs that defer to this run: none does.',
          integerId('Id of the run.', 345),
        ),
        rangeParameter('created_at__range', 'Only runs that were recorded between these times'),
        rangeParameter('finished_at__range', 'Only runs that ended between these times'),
        accountParameter(),
        relatedParameter(RUN_RELATED),
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
      parameters: [
        relatedParameter(RUN_RELATED),
        orderParameter(RUN_ORDERS, 'Has no effect on one run.'),
        accountParameter(),
      ],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The run.', schemaRef('Run'), ERRORED_EXAMPLE) },
        [400],
      ),
    },
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/finish': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: withIdempotencyKey({
      operationId: 'finishRun',
      parameters: [parameter('LeaseToken')],
      tags,
      summary: 'Report how a run ended',
      description: `An errored run sends \`job.run.errored\` at once; \`job.run.completed\` follows when the artifacts are ingested. A cancelled run sends nothing. A repeat with the same status sends nothing, and replaces no step that has ended. ${REPORTERS}`,
      requestBody: requestBody('RunFinish', 'The end of the run.', {
        status: 'errored',
        status_message,
        finished_at,
      }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The end is recorded.', schemaRef('Run'), ERRORED_EXAMPLE),
          409: leaseConflict(
            'The run has not started or has ended with another status, or the steps exceed a limit of the run or the quota of the account.',
            'The run has ended as Success and cannot end as Errored.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/artifacts': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: listArtifacts,
    post: withIdempotencyKey({
      operationId: 'reportArtifacts',
      parameters: [parameter('LeaseToken')],
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
          409: leaseConflict(
            'The run has not started, or the store has lost the file that was uploaded last.',
            'The run has not been started.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
};
