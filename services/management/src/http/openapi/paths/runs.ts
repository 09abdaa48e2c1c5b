import { ERRORED_EXAMPLE, INGESTED_EXAMPLE, RUNNING_EXAMPLE } from '../examples.ts';
import { integerId } from '../field-schemas.ts';
import { keyed } from '../keyed.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Paths } from '../openapi-types.ts';
import { inQuery, PAGE, parameter } from '../parameters.ts';
import { requestBody } from '../request-body.ts';
import { answers, failureBecause, OF_A_BODY, success } from '../responses.ts';
import { RUN_STATUS } from '../schemas/runs.ts';

const tags = ['Jobs and runs'];

const REPORTERS = 'Needs one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.';

const { job_id, id: run_id, reason, engine_version, started_at } = RUNNING_EXAMPLE;
const { status_message, finished_at } = ERRORED_EXAMPLE;

/** DESIGN, sections 4 ("Runs API") and 7 ("Runs"). */
export const runPaths: Paths = {
  '/api/v2/accounts/{account_id}/runs/': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listRuns',
      tags,
      summary: 'List the runs of an account',
      description: 'Newest first.',
      parameters: [
        inQuery('job_id', 'Only runs of this job.', integerId('Id of the job.', 12)),
        inQuery('status', 'Only runs in this status.', RUN_STATUS),
        ...PAGE,
      ],
      responses: answers(
        'runs',
        { 200: success(200, 'A page of them.', schemaRef('Run'), RUNNING_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: keyed({
      operationId: 'startRun',
      tags,
      summary: 'Report that a run has started',
      description: `Sends \`job.run.started\`. A job runner that numbers its runs may repeat the call: it answers 200 with the same run and sends nothing. ${REPORTERS}`,
      requestBody: requestBody('RunStart', 'The run.', {
        job_id,
        run_id,
        reason,
        engine_version,
        started_at,
      }),
      responses: answers(
        'runs',
        {
          200: success(200, 'The run of that number was known already.', schemaRef('Run'), RUNNING_EXAMPLE),
          201: success(201, 'It is recorded.', schemaRef('Run'), RUNNING_EXAMPLE),
          409: failureBecause(
            409,
            'The run of that number is another job’s.',
            'Run 345 belongs to another job.',
          ),
        },
        OF_A_BODY,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'getRun',
      tags,
      summary: 'Get a run',
      responses: answers('runs', { 200: success(200, 'It.', schemaRef('Run'), ERRORED_EXAMPLE) }),
    },
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/finish/': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: keyed({
      operationId: 'finishRun',
      tags,
      summary: 'Report how a run ended',
      description: `An errored run sends \`job.run.errored\` at once; \`job.run.completed\` follows when the artifacts are ingested. A cancelled run sends nothing. Repeated with the same status, it changes nothing. ${REPORTERS}`,
      requestBody: requestBody('RunFinish', 'The end.', { status: 'errored', status_message, finished_at }),
      responses: answers(
        'runs',
        {
          200: success(200, 'It is recorded.', schemaRef('Run'), ERRORED_EXAMPLE),
          409: failureBecause(
            409,
            'The run has ended in another way already.',
            'The run has ended as Success and cannot end as Errored.',
          ),
        },
        OF_A_BODY,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/artifacts/': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    post: keyed({
      operationId: 'reportArtifacts',
      tags,
      summary: 'Report that the artifacts of a run are ingested',
      description: `Sends \`job.run.completed\` once the run has finished too, whichever comes first; not for a cancelled run. Needs no body. Repeated, it changes nothing. ${REPORTERS}`,
      responses: answers(
        'runs',
        { 200: success(200, 'It is recorded.', schemaRef('Run'), INGESTED_EXAMPLE) },
        OF_A_BODY,
      ),
    }),
  },
};
