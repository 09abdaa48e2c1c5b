import {
  EVENT_LIMITS,
  integerIdFromText,
  isIntegerId,
  nanosecondTimestamp,
  type Problem,
  RUN_STATUS_CODES,
  type RunStatus,
  reportedText,
  toProblems,
  VALIDATION_OPTIONS,
} from '@runhook/contract';
import Joi from 'joi';
import { BODY_BYTES_MAX } from '../http/body.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_RUNS,
  REPORT_RUNS,
  type WriteRequest,
} from '../http/endpoint.ts';
import { type EndpointResponse, pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import {
  createReader,
  integer,
  orderOf,
  QueryReader,
  searchText,
  timestamp,
} from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import type { CreateResponse, Reporting, Runs } from './runs.ts';
import { listRuns, RUN_ORDERS } from './statements.ts';
import { FINISH_STATUSES, type FinishStatus } from './transitions.ts';

const RUNS_PATH = '/api/v2/accounts/:account_id/runs';
const STATUSES = Object.keys(RUN_STATUS_CODES) as RunStatus[];

/** Throws if the store does not have the files of a run, whose ingestion must not be reported then. */
type ConfirmStored = (accountId: number, runId: number) => Promise<void>;

/** The Runs API for job runners over REST (docs/contract.md#runs-and-jobs), on every plan. */
export function runsEndpoints(
  runs: Runs,
  reads: ReplicaReads,
  confirmStored: ConfirmStored = async () => undefined,
): AccountEndpoint[] {
  return [
    {
      method: 'POST',
      path: RUNS_PATH,
      access: REPORT_RUNS,
      isBatched: true,
      bodyBytesMax: BODY_BYTES_MAX.run,
      handle: (request) => start(runs, request),
    },
    {
      method: 'GET',
      path: RUNS_PATH,
      access: READ_RUNS,
      isSlowRead: true,
      handle: (request) => list(reads, request),
    },
    {
      method: 'GET',
      path: `${RUNS_PATH}/:run_id`,
      access: READ_RUNS,
      handle: (request) => find(runs, request),
    },
    {
      method: 'POST',
      path: `${RUNS_PATH}/:run_id/finish`,
      access: REPORT_RUNS,
      isBatched: true,
      bodyBytesMax: BODY_BYTES_MAX.run,
      handle: (request) => finish(runs, request),
    },
    {
      method: 'POST',
      path: `${RUNS_PATH}/:run_id/artifacts`,
      access: REPORT_RUNS,
      isBatched: true,
      prepare: (request) => confirmStored(request.account.id, runIdOf(request)),
      handle: (request) => ingestArtifacts(runs, request),
    },
  ];
}

async function start(runs: Runs, request: WriteRequest): Promise<RecordedResponse> {
  const { fields, problems } = parseRunStart(request.body);
  if (problems) throw new InvalidRequestError(problems);
  return await runs.start(reportingOf(request), fields, (outcome) => runResponse(outcome, fields.job_id));
}

async function finish(runs: Runs, request: WriteRequest): Promise<RecordedResponse> {
  const runId = runIdOf(request);
  const { fields, problems } = parseRunFinish(request.body);
  if (problems) throw new InvalidRequestError(problems);
  return await runs.finish(reportingOf(request), runId, fields, runResponse);
}

async function ingestArtifacts(runs: Runs, request: WriteRequest): Promise<RecordedResponse> {
  return await runs.ingestArtifacts(reportingOf(request), runIdOf(request), runResponse);
}

function reportingOf({ account, version, recorder }: WriteRequest): Reporting {
  return { accountId: account.id, version, recorder };
}

/** @param jobId of a start */
function runResponse(outcome: Parameters<CreateResponse>[0], jobId?: number): EndpointResponse {
  switch (outcome.kind) {
    case 'started':
      return { code: 201, data: outcome.run };
    case 'existing':
    case 'recorded':
      return { code: 200, data: outcome.run };
    case 'not_found':
      throw new NotFoundError();
    case 'conflict':
      throw new ConflictError(outcome.message);
    case 'unknown_job':
      throw new InvalidRequestError([
        { field: 'job_id', message: `job_id ${jobId} is not a job of this account` },
      ]);
  }
}

async function find(runs: Runs, request: AccountRequest): Promise<EndpointResponse> {
  const run: RunView | null = await runs.find(request.account.id, runIdOf(request));
  if (!run) throw new NotFoundError();
  return { code: 200, data: run };
}

async function list(reads: ReplicaReads, request: AccountRequest): Promise<EndpointResponse> {
  const { account, query } = request;
  const reader = new QueryReader(query);
  const filters = {
    jobIds: [reader.optional('job_id', id), reader.optional('job_definition_id', id)],
    projectId: reader.optional('project_id', id),
    environmentId: reader.optional('environment_id', id),
    status: reader.optional('status', statusOf),
    search: reader.optional('search', searchText),
    since: reader.optional('since', timestamp),
    until: reader.optional('until', timestamp),
  };
  const order = reader.optional('order_by', orderOf(RUN_ORDERS));
  const page = reader.page();
  reader.check();
  const { runs: listedRuns, totalCount } = await listRuns(reads.databaseFor(request), account.id, filters, {
    ...page,
    order,
  });
  return { code: 200, data: listedRuns, extra: pageExtra(page, totalCount, listedRuns.length) };
}

const id = integer(1, Number.MAX_SAFE_INTEGER);

/** Accepts a status by name or by code. */
const statusOf = createReader(
  (text) => STATUSES.find((status) => status === text || String(RUN_STATUS_CODES[status]) === text) ?? null,
  `must be one of ${STATUSES.map((status) => `${status} (${RUN_STATUS_CODES[status]})`).join(', ')}`,
);

/** Throws a 404 for text that is not a run id. */
function runIdOf(request: AccountRequest): number {
  const runId = integerIdFromText(request.param('run_id'));
  if (runId === null) throw new NotFoundError();
  return runId;
}

/** Limits of the fields in a report. */
export const RUN_LIMITS = {
  engineVersionCharactersMax: 255,
  /** Limit of `reason` and `status_message`: payloads contain no longer ones. */
  messageCharactersMax: EVENT_LIMITS.messageCharactersMax,
} as const;

/** Body of `POST …/runs/`. Times are ISO 8601 UTC in seconds with `Z`. */
export interface RunStart {
  job_id: number;
  run_id?: number;
  reason?: string;
  engine_version: string;
  started_at?: string;
}

/** Body of `POST …/runs/{run_id}/finish/`. */
export interface RunFinish {
  status: FinishStatus;
  status_message?: string;
  finished_at?: string;
}

export type RunRequestParsing<Fields> =
  | { fields: Fields; problems?: never }
  | { fields?: never; problems: Problem[] };

const integerId = Joi.any().custom((value: unknown, helpers) =>
  isIntegerId(value) ? value : helpers.message({ custom: '{{#label}} must be a positive integer' }),
);

/** Treats a missing value, null and "" as no text. */
const optionalText = reportedText(RUN_LIMITS.messageCharactersMax).empty(Joi.valid(null, ''));

/** Truncates fractions of a second instead of rounding, since a run must not start in the future. */
const secondsTime = Joi.string()
  .empty(null)
  .custom((text: string, helpers) => {
    const time = nanosecondTimestamp(text);
    // PostgreSQL's calendar has no year 0.
    if (time === null || time.startsWith('0000')) {
      return helpers.message({ custom: '{{#label}} must be a UTC time like 2026-01-31T23:59:59Z' });
    }
    return `${time.slice(0, 19)}Z`;
  });

const startSchema = Joi.object<RunStart>({
  job_id: integerId.required(),
  run_id: integerId.empty(null),
  reason: optionalText,
  engine_version: reportedText(RUN_LIMITS.engineVersionCharactersMax).required(),
  started_at: secondsTime,
});

const finishSchema = Joi.object<RunFinish>({
  status: Joi.string()
    .valid(...FINISH_STATUSES)
    .required(),
  status_message: optionalText,
  finished_at: secondsTime,
});

function parseRunStart(body: unknown): RunRequestParsing<RunStart> {
  return parse(startSchema, body);
}

function parseRunFinish(body: unknown): RunRequestParsing<RunFinish> {
  return parse(finishSchema, body);
}

function parse<Fields>(schema: Joi.ObjectSchema<Fields>, body: unknown): RunRequestParsing<Fields> {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}

/** A run in responses (docs/contract.md#runs-and-jobs): ids are integers, times ISO 8601 UTC in seconds with `Z`. */
export interface RunView {
  id: number;
  account_id: number;
  job_id: number;
  /** The job's id under the name that clients of this API family expect. */
  job_definition_id: number;
  job_name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
  engine_version: string;
  status: RunStatus;
  status_code: number;
  status_message: string | null;
  reason: string | null;
  started_at: string;
  finished_at: string | null;
  errored_at: string | null;
  artifacts_ingested_at: string | null;
}
