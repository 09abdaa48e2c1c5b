import {
  EVENT_LIMITS,
  integerId,
  type RunStep,
  reportedText,
  reportedTime,
  runStepsSchema,
} from '@runhook/contract';
import Joi from 'joi';
import type { BaseUrl } from '../http/base-url.ts';
import { BODY_BYTES_MAX } from '../http/body.ts';
import {
  type AccountEndpoint,
  LEASE_TOKEN_HEADER,
  REPORT_RUNS,
  type WriteRequest,
} from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, LeaseLostError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import { parseBody } from '../http/parse-body.ts';
import { RUNS_PATH, runIdOf } from './read-routes.ts';
import { runResponse } from './run-response.ts';
import type { CreateResponse, Reporting, Runs } from './runs.ts';
import { FINISH_STATUSES, type FinishStatus } from './transitions.ts';

export interface RunsEndpointDependencies {
  runs: Runs;
  baseUrl: BaseUrl;
  /** Throws if the store does not have the files of a run: their ingestion is not reported then. */
  confirmStored?: (accountId: number, runId: number) => Promise<void>;
}

/** Reports of job runners over REST (docs/contract.md#runs-and-jobs), on every plan. */
export function runsEndpoints(deps: RunsEndpointDependencies): AccountEndpoint[] {
  return [
    {
      method: 'POST',
      path: RUNS_PATH,
      access: REPORT_RUNS,
      isBatched: true,
      bodyBytesMax: BODY_BYTES_MAX.run,
      handle: (request) => start(deps, request),
    },
    {
      method: 'POST',
      path: `${RUNS_PATH}/:run_id/finish`,
      access: REPORT_RUNS,
      isBatched: true,
      bodyBytesMax: BODY_BYTES_MAX.steps,
      handle: (request) => finish(deps, request),
    },
    {
      method: 'POST',
      path: `${RUNS_PATH}/:run_id/artifacts`,
      access: REPORT_RUNS,
      isBatched: true,
      prepare: async (request) => deps.confirmStored?.(request.account.id, runIdOf(request)),
      handle: (request) => ingestArtifacts(deps, request),
    },
  ];
}

async function start(
  { runs, baseUrl }: RunsEndpointDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  const fields = parseBody(startSchema, request.body);
  return await runs.start(reportingOf(request), fields, reportResponse(baseUrl(request), fields.job_id));
}

async function finish(
  { runs, baseUrl }: RunsEndpointDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  const runId = runIdOf(request);
  const fields = parseBody(finishSchema, request.body);
  return await runs.finish(reportingOf(request), runId, fields, reportResponse(baseUrl(request)));
}

async function ingestArtifacts(
  { runs, baseUrl }: RunsEndpointDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  return await runs.ingestArtifacts(reportingOf(request), runIdOf(request), reportResponse(baseUrl(request)));
}

export function reportingOf({ account, version, recorder, header }: WriteRequest): Reporting {
  return { accountId: account.id, version, recorder, leaseToken: header(LEASE_TOKEN_HEADER) ?? null };
}

/** @param jobId of a start */
export function reportResponse(baseUrl: string, jobId?: number): CreateResponse {
  return (outcome): EndpointResponse => {
    switch (outcome.kind) {
      case 'started':
        return { code: 201, data: runResponse(outcome.run, { baseUrl }) };
      case 'existing':
      case 'recorded':
      case 'unchanged':
        return { code: 200, data: runResponse(outcome.run, { baseUrl }) };
      case 'not_found':
        throw new NotFoundError();
      case 'conflict':
        throw outcome.hasEnded ? new LeaseLostError(outcome.message) : new ConflictError(outcome.message);
      case 'unknown_job':
        throw new InvalidRequestError([
          { field: 'job_id', message: `job_id ${jobId} is not a job of this account` },
        ]);
    }
  };
}

/** Limits of the fields in a report. */
export const RUN_LIMITS = {
  engineVersionCharactersMax: 255,
  /** Limit of `reason` and `status_message`: payloads contain no longer ones. */
  messageCharactersMax: EVENT_LIMITS.messageCharactersMax,
} as const;

/** Body of `POST …/runs/`. Times are ISO 8601 UTC with microseconds and `Z`. */
export interface RunStart {
  job_id: number;
  run_id?: number;
  reason?: string;
  engine_version: string;
  started_at?: string;
}

/** Body of `POST …/runs/{run_id}/start/`. */
export type RunBegin = Pick<RunStart, 'engine_version' | 'started_at'>;

/** Body of `POST …/runs/{run_id}/finish/`. */
export interface RunFinish {
  status: FinishStatus;
  status_message?: string;
  finished_at?: string;
  run_steps?: RunStep[];
}

/** Treats a missing value, null and "" as no text. */
const optionalText = reportedText(RUN_LIMITS.messageCharactersMax).empty(Joi.valid(null, ''));

const BEGIN_FIELDS = {
  engine_version: reportedText(RUN_LIMITS.engineVersionCharactersMax).required(),
  started_at: reportedTime,
};
export const beginSchema = Joi.object<RunBegin>(BEGIN_FIELDS).required();

const startSchema = Joi.object<RunStart>({
  job_id: integerId.required(),
  run_id: integerId.empty(null),
  reason: optionalText,
  ...BEGIN_FIELDS,
}).required();

const finishSchema = Joi.object<RunFinish>({
  status: Joi.string()
    .valid(...FINISH_STATUSES)
    .required(),
  status_message: optionalText,
  finished_at: reportedTime,
  run_steps: runStepsSchema.empty(null),
}).required();
