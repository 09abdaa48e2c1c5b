import { type RunStep, runStepsSchema } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import Joi from 'joi';
import { BODY_BYTES_MAX } from '../http/body.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  LEASE_TOKEN_HEADER,
  READ_RUNS,
  REPORT_RUNS,
  type WriteRequest,
} from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { accountIdOf, booleanValue } from '../http/filter-readers.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import { relatedNames } from '../http/include-related.ts';
import { parseBody } from '../http/parse-body.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { RUNS_PATH, runIdOf } from './read-routes.ts';
import { findRun } from './statements.ts';
import { loadRunSteps, loadStepText, reportSteps, type StepTextName } from './step-statements.ts';

const STEPS_PATH = `${RUNS_PATH}/:run_id/steps` as const;

export interface RunStepsDependencies {
  pool: Pool;
  /** Quota of an account's steps; see `RunStepsTarget`. */
  stepsBytesMax: number;
}

/** The steps of a run (docs/contract.md#run-steps), on every plan. */
export function runStepsEndpoints(dependencies: RunStepsDependencies): AccountEndpoint[] {
  const { pool } = dependencies;
  return [
    {
      method: 'POST',
      path: STEPS_PATH,
      access: REPORT_RUNS,
      bodyBytesMax: BODY_BYTES_MAX.steps,
      handle: (request) => report(dependencies, request),
    },
    {
      method: 'GET',
      path: STEPS_PATH,
      access: READ_RUNS,
      handle: (request) => list(pool, request),
    },
    ...(['logs', 'debug_logs'] as const).map(
      (name): AccountEndpoint => ({
        method: 'GET',
        path: `${STEPS_PATH}/:index/${name}`,
        access: READ_RUNS,
        handle: (request) => readText(pool, request, name),
      }),
    ),
  ];
}

const bodySchema = Joi.object<{ run_steps: RunStep[] }>({
  run_steps: runStepsSchema.min(1).required(),
}).required();

async function report(
  { pool, stepsBytesMax }: RunStepsDependencies,
  request: WriteRequest,
): Promise<RecordedResponse> {
  const { account, body, header, recorder } = request;
  const runId = runIdOf(request);
  const { run_steps } = parseBody(bodySchema, body);
  const target = { accountId: account.id, runId, accountBytesMax: stepsBytesMax };
  const leaseToken = header(LEASE_TOKEN_HEADER) ?? null;
  return await reportSteps(pool, target, run_steps, recorder, leaseToken);
}

async function list(pool: Pool, request: AccountRequest): Promise<EndpointResponse> {
  const { account, query, requireMemory } = request;
  const runId = runIdOf(request);
  const reader = new QueryReader(query);
  reader.filter('account_id', accountIdOf(account.id));
  const withLogs = reader.filter('logs', booleanValue) ?? true;
  const names = reader.list('include_related', relatedNames(['run_steps', 'debug_logs']));
  const withDebugLogs = names?.has('debug_logs') ?? false;
  reader.check();
  if ((await findRun(pool, account.id, runId)) === null) throw new NotFoundError();
  const texts = { withLogs, withDebugLogs, requireMemory };
  const steps = await loadRunSteps(pool, account.id, [runId], texts);
  return { code: 200, data: steps.get(runId) ?? [] };
}

async function readText(pool: Pool, request: AccountRequest, name: StepTextName): Promise<EndpointResponse> {
  const accountId = request.account.id;
  const runId = runIdOf(request);
  const indexText = request.param('index');
  if (!/^\d{1,7}$/.test(indexText)) throw new NotFoundError();
  const index = Number(indexText);
  const content = await loadStepText(pool, { accountId, runId, index }, name);
  if (content === null) throw new NotFoundError();
  const fileName = `run-${runId}-step-${index}${name === 'logs' ? '' : '-debug'}.log`;
  return { code: 200, data: null, text: { content, fileName } };
}
