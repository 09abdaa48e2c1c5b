import { type ReportedRunStep, RUN_STATUSES, RUN_STEP_LIMITS, STORED_RUN_STATUSES } from '@runhook/contract';
import { BODY_BYTES_MAX } from '../http/body.ts';
import {
  count,
  durationOf,
  integerId,
  microsecondsTime,
  nullable,
  type Paths,
  type Response,
  reportedUtc,
  requestObject,
  requiredReportedText,
  responseObject,
  type Schema,
  schemaRef,
  stepIndex,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  accountParameter,
  parameter,
  queryParameter,
  relatedParameter,
  requestBody,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { REPORTERS } from '../http/openapi/permissions.ts';
import { BODY_FAILURES, leaseConflict, operationResponses, success } from '../http/openapi/responses.ts';
import { STATUS_CODES, statusNumber } from './status-openapi.ts';
import type { RunStepResponse } from './step-response.ts';

const { stepsMax, nameCharactersMax, textBytesMax, runBytesMax } = RUN_STEP_LIMITS;

const EXAMPLE: RunStepResponse = {
  id: 174_063_927_104_512,
  run_id: 345,
  account_id: 1,
  index: 1,
  name: 'Invoke dbt with `dbt build`',
  status: 10,
  status_humanized: 'Success',
  started_at: '2026-11-20T09:58:26.250000Z',
  finished_at: '2026-11-20T10:00:00.500000Z',
  duration: '00:01:34',
  duration_humanized: '1 minute, 34 seconds',
  created_at: '2026-11-20T10:00:01.000000Z',
  updated_at: '2026-11-20T10:00:01.000000Z',
  logs_bytes: 5,
  debug_logs_bytes: 0,
};

/** Numbers and words of the statuses, in any case. */
const STATUS_PATTERN = `^(${STORED_RUN_STATUSES.flatMap((word) => {
  const { code, humanized } = RUN_STATUSES[word];
  const letters = [...new Set([word, humanized])].map((text) =>
    [...text].map((letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`).join(''),
  );
  return [String(code), ...letters];
}).join('|')})$`;

const { index, name, status, started_at, finished_at } = EXAMPLE;
const REPORTED_EXAMPLE = { index, name, status, started_at, finished_at, logs: 'Done\n' };

/** Schema of a time in a report: null, or UTC with a fraction of any length. */
export function reportedTime(description: string): Schema {
  return nullable(reportedUtc(`${description} ISO 8601 UTC, up to microseconds.`));
}

const reportedLog = (description: string): Schema => ({
  type: ['string', 'null'],
  description: `${description} ANSI escape sequences are stored. Of more than ${textBytesMax} bytes only the end is stored, after a line that says so.`,
});

const responseLog = (description: string): Schema => ({
  type: ['string', 'null'],
  description: `${description} Null without one. Missing unless requested.`,
});

const INDEX: Schema = stepIndex();

/** A step of `run_steps`. Not a component: a request schema within others would count as that of a response. */
const REPORTED_STEP: Schema = requestObject<ReportedRunStep>(
  'A step of a run.',
  {
    index: INDEX,
    name: requiredReportedText(
      nameCharactersMax,
      'Name of the step. Readers find dbt commands by the form: Invoke dbt with `dbt …`.',
    ),
    status: {
      anyOf: [
        { type: 'integer', enum: STATUS_CODES },
        { type: 'string', pattern: STATUS_PATTERN },
      ],
      description: `The number or the word of the status: ${STORED_RUN_STATUSES.map((word) => `${RUN_STATUSES[word].code} or ${RUN_STATUSES[word].humanized}`).join(', ')}.`,
      examples: [10],
    },
    started_at: reportedTime('When it started.'),
    finished_at: reportedTime('When it ended.'),
    logs: reportedLog('The log.'),
    debug_logs: reportedLog('The debug log.'),
  },
  ['index', 'name', 'status'],
);

/** `run_steps` of a report. */
export function reportedSteps(description: string, isOptional: boolean): Schema {
  return {
    type: isOptional ? ['array', 'null'] : 'array',
    items: REPORTED_STEP,
    ...(isOptional ? {} : { minItems: 1 }),
    maxItems: stepsMax,
    description: `${description} Indexes must differ; a step with an index that the run has is replaced. A run may have ${stepsMax} steps and ${runBytesMax} bytes of logs.`,
  };
}

/** Schemas of the OpenAPI document; see docs/contract.md#run-steps. */
export const runStepSchemas: Record<string, Schema> = {
  RunStep: responseObject<RunStepResponse>(
    'A step of a run.',
    {
      id: integerId('Id of the step, the same for each version of it.', EXAMPLE.id),
      run_id: integerId('The run.', 345),
      account_id: integerId('The account.', 1),
      index: INDEX,
      name: text('Name of the step. That of a dbt command is: Invoke dbt with `dbt …`.'),
      status: statusNumber('The status:'),
      status_humanized: text('The status in a word.'),
      started_at: nullable(microsecondsTime('When it started; null if not reported.')),
      finished_at: nullable(microsecondsTime('When it ended; null before, or if not reported.')),
      duration: durationOf('Of a step that is in progress up to now.'),
      duration_humanized: text('The duration in words.'),
      created_at: microsecondsTime('When it was first reported.'),
      updated_at: microsecondsTime('When it was last reported.'),
      logs_bytes: count('Size of the log in bytes of UTF-8.'),
      debug_logs_bytes: count('Size of the debug log in bytes of UTF-8.'),
      logs: responseLog('The log, with its ANSI escape sequences.'),
      debug_logs: responseLog('The debug log.'),
    },
    ['logs', 'debug_logs'],
  ),

  RunSteps: requestObject<{ run_steps: unknown[] }>(
    'Steps of a run.',
    { run_steps: reportedSteps('The steps.', false) },
    ['run_steps'],
  ),
};

const tags = ['Jobs and runs'];
const STEPS = '/api/v2/accounts/{account_id}/runs/{run_id}/steps';

const STEP_LIST: Schema = {
  type: 'array',
  items: schemaRef('RunStep'),
  description: 'The steps by their index.',
};

const LOG_RESPONSE: Response = {
  description: 'The text, which browsers save as a file.',
  content: { 'text/plain': { schema: { type: 'string' }, example: 'Done\n' } },
};

function logPath(what: string, operationId: string): Paths[keyof Paths] {
  return {
    parameters: [parameter('AccountId'), parameter('RunId'), parameter('StepIndex')],
    get: {
      operationId,
      tags,
      summary: `Get the ${what} of a step as text`,
      description: 'A step without the text is a 404.',
      responses: operationResponses('runs', { 200: LOG_RESPONSE }),
    },
  };
}

/** Paths of the OpenAPI document; see docs/contract.md#run-steps. */
export const runStepPaths: Paths = {
  [STEPS]: {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'listRunSteps',
      tags,
      summary: 'List the steps of a run',
      description: 'All of them, by their index, with their logs.',
      parameters: [
        queryParameter('logs', 'Whether the steps have their logs. Default: true.', { type: 'boolean' }),
        relatedParameter(['run_steps', 'debug_logs']),
        accountParameter(),
      ],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The steps.', STEP_LIST, [{ ...EXAMPLE, logs: 'Done\n' }]) },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'reportRunSteps',
      parameters: [parameter('LeaseToken')],
      tags,
      summary: 'Report steps of a run in progress',
      description: `Sends nothing. The body may have ${BODY_BYTES_MAX.steps} bytes. The response has all steps of the run, without logs. ${REPORTERS}`,
      requestBody: requestBody('RunSteps', 'The steps.', { run_steps: [REPORTED_EXAMPLE] }),
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The steps are stored.', STEP_LIST, [EXAMPLE]),
          409: leaseConflict(
            'The run is not in progress, or the steps exceed a limit of the run or the quota of the account. Nothing is stored.',
            'The run is not in progress: its status is Success.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
  [`${STEPS}/{index}/logs`]: logPath('log', 'getRunStepLogs'),
  [`${STEPS}/{index}/debug_logs`]: logPath('debug log', 'getRunStepDebugLogs'),
};
