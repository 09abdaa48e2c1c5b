// SQL by hand: a claim is one transaction with its response.
import { integerId, isFinalRunStatus, reportedText } from '@runhook/contract';
import { inTransaction, type Pool } from '@runhook/database';
import Joi from 'joi';
import type { BaseUrl } from '../http/base-url.ts';
import {
  type AccountEndpoint,
  LEASE_TOKEN_HEADER,
  REPORT_RUNS,
  type WriteRequest,
} from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { InvalidRequestError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import { LongPoll, WAIT_SECONDS_MAX } from '../http/long-poll.ts';
import { parseBody } from '../http/parse-body.ts';
import { claimRun, type RunClaim } from './claims.ts';
import { RUNS_PATH, runIdOf } from './read-routes.ts';
import { beginSchema, reportingOf, reportResponse } from './routes.ts';
import { RUNNER_CHARACTERS_MAX, renewLease } from './run-requests.ts';
import { type RunResponse, runResponse } from './run-response.ts';
import type { RunWaits } from './run-waits.ts';
import type { Runs } from './runs.ts';
import { findRun } from './statements.ts';

/** Maximum number of jobs that a claim names. */
export const CLAIM_JOBS_MAX = 100;

/** Body of `POST …/runs/claim/`. */
export interface ClaimFields {
  job_ids?: number[];
  run_id?: number;
  runner?: string;
  /** Seconds to wait for a run; 0 when omitted. */
  wait?: number;
}

/** Body of `POST …/runs/{run_id}/heartbeat/`. */
export interface HeartbeatFields {
  /** Seconds to wait for the end of the run; 0 when omitted. */
  wait?: number;
}

/** A run that the caller has claimed. */
export interface ClaimResponse {
  run: RunResponse;
  /** Commands to execute: those of the trigger, otherwise those of the job. */
  execute_steps: string[];
  lease_token: string;
  /** ISO 8601 UTC with microseconds. */
  lease_expires_at: string;
  /** Number of claims of the run, this one included. */
  attempt: number;
}

export interface HeartbeatResponse {
  run: RunResponse;
  lease_expires_at: string;
}

export interface ClaimEndpointDependencies {
  pool: Pool;
  runs: Runs;
  waits: RunWaits;
  baseUrl: BaseUrl;
}

/** Lets runners claim triggered runs over REST (docs/contract.md#triggered-runs). */
export function claimEndpoints(deps: ClaimEndpointDependencies): AccountEndpoint[] {
  const post = (
    path: `${typeof RUNS_PATH}/${string}`,
    handler: (dependencies: ClaimEndpointDependencies, request: WriteRequest) => Promise<RecordedResponse>,
  ): AccountEndpoint => ({
    method: 'POST',
    path,
    access: REPORT_RUNS,
    handle: (request) => handler(deps, request),
  });
  return [
    post(`${RUNS_PATH}/claim`, claim),
    post(`${RUNS_PATH}/:run_id/start`, begin),
    post(`${RUNS_PATH}/:run_id/heartbeat`, heartbeat),
  ];
}

async function claim(deps: ClaimEndpointDependencies, request: WriteRequest): Promise<RecordedResponse> {
  const {
    job_ids: jobIds = null,
    run_id: runId = null,
    runner = null,
    wait = 0,
  } = parseBody(claimSchema, request.body ?? {});
  const { account, recorder } = request;
  const recorded = await inTransaction(deps.pool, async (transaction) => {
    const found = await claimRun(transaction, account.id, { jobIds, runId, runner });
    if (found === null && wait > 0) return null;
    const data = found === null ? null : claimResponse(found, deps.baseUrl(request));
    return await recorder.record(transaction, { code: 200, data });
  });
  if (recorded !== null) return recorded;
  throw new LongPoll({
    response: { code: 200, data: null },
    waitMs: wait * 1_000,
    wait: (remainingMs, signal) =>
      deps.waits.wait({ kind: 'request', accountId: account.id, jobIds }, remainingMs, signal),
  });
}

function claimResponse({ run, executeSteps, lease }: RunClaim, baseUrl: string): ClaimResponse {
  return {
    run: runResponse(run, { baseUrl }),
    execute_steps: executeSteps,
    lease_token: lease.token,
    lease_expires_at: lease.expiresAt,
    attempt: lease.attempt,
  };
}

async function begin(
  { runs, baseUrl }: ClaimEndpointDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  const fields = parseBody(beginSchema, request.body);
  return await runs.begin(reportingOf(request), runIdOf(request), fields, reportResponse(baseUrl(request)));
}

async function heartbeat(
  { pool, waits, baseUrl }: ClaimEndpointDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  const { wait = 0 } = parseBody(heartbeatSchema, request.body ?? {});
  const token = request.header(LEASE_TOKEN_HEADER);
  if (token === undefined)
    throw new InvalidRequestError([
      { field: LEASE_TOKEN_HEADER, message: `${LEASE_TOKEN_HEADER} is required` },
    ]);
  const { account, recorder } = request;
  const runId = runIdOf(request);
  const result = await inTransaction(pool, async (transaction) => {
    const expiresAt = await renewLease(transaction, { accountId: account.id, runId, token });
    const run = await findRun(transaction, account.id, runId);
    if (run === null) throw new NotFoundError();
    const data: HeartbeatResponse = {
      run: runResponse(run, { baseUrl: baseUrl(request) }),
      lease_expires_at: expiresAt,
    };
    const response: EndpointResponse = { code: 200, data };
    if (wait > 0 && !isFinalRunStatus(run.status)) return { response, recorded: null };
    return { response, recorded: await recorder.record(transaction, response) };
  });
  if (result.recorded !== null) return result.recorded;
  throw new LongPoll({
    response: result.response,
    waitMs: wait * 1_000,
    wait: (remainingMs, signal) =>
      waits.wait({ kind: 'end', accountId: account.id, runId }, remainingMs, signal),
  });
}

const waitSeconds = Joi.number().integer().min(0).max(WAIT_SECONDS_MAX).empty(null);

const claimSchema = Joi.object<ClaimFields>({
  job_ids: Joi.array().items(integerId).min(1).max(CLAIM_JOBS_MAX).empty(null),
  run_id: integerId.empty(null),
  runner: reportedText(RUNNER_CHARACTERS_MAX).empty(Joi.valid(null, '')),
  wait: waitSeconds,
});

const heartbeatSchema = Joi.object<HeartbeatFields>({ wait: waitSeconds });
