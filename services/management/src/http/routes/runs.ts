import { integerIdFromText, RUN_STATUS_CODES, type RunStatus } from '@runhook/contract';
import type { ReportOutcome, Runs } from '../../data/runs.ts';
import { parseRunFinish, parseRunStart } from '../../domain/run-requests.ts';
import type { RunView } from '../../domain/run-view.ts';
import { READ_RUNS, REPORT_RUNS } from '../authorize.ts';
import type { AccountEndpoint, AccountRequest } from '../endpoint.ts';
import type { Answer } from '../envelope.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../errors.ts';
import { pageExtra } from '../page-extra.ts';
import { integer, oneOf, QueryReader } from '../query-parameters.ts';

const RUNS = '/api/v2/accounts/:account_id/runs';
const STATUSES = Object.keys(RUN_STATUS_CODES) as RunStatus[];

/** The runs API for job runners that speak REST (DESIGN, sections 4 and 7). It works on every plan. */
export function runsEndpoints(runs: Runs): AccountEndpoint[] {
  return [
    { method: 'POST', path: RUNS, access: REPORT_RUNS, handle: (request) => start(runs, request) },
    { method: 'GET', path: RUNS, access: READ_RUNS, handle: (request) => list(runs, request) },
    {
      method: 'GET',
      path: `${RUNS}/:run_id`,
      access: READ_RUNS,
      handle: (request) => find(runs, request),
    },
    {
      method: 'POST',
      path: `${RUNS}/:run_id/finish`,
      access: REPORT_RUNS,
      handle: (request) => finish(runs, request),
    },
    {
      method: 'POST',
      path: `${RUNS}/:run_id/artifacts`,
      access: REPORT_RUNS,
      handle: async (request) => reported(await runs.ingestArtifacts(request.account.id, runIdOf(request))),
    },
  ];
}

async function start(runs: Runs, { account, body }: AccountRequest): Promise<Answer> {
  const { fields, problems } = parseRunStart(body);
  if (problems) throw new InvalidRequestError(problems);
  const outcome = await runs.start(account.id, fields);
  switch (outcome.kind) {
    case 'started':
      return { code: 201, data: outcome.run };
    case 'known':
      return { code: 200, data: outcome.run };
    case 'conflict':
      throw new ConflictError(outcome.message);
    case 'unknown_job':
      throw new InvalidRequestError([
        { field: 'job_id', message: `job_id ${fields.job_id} is not a job of this account` },
      ]);
  }
}

async function finish(runs: Runs, request: AccountRequest): Promise<Answer> {
  const runId = runIdOf(request);
  const { fields, problems } = parseRunFinish(request.body);
  if (problems) throw new InvalidRequestError(problems);
  return reported(await runs.finish(request.account.id, runId, fields));
}

async function find(runs: Runs, request: AccountRequest): Promise<Answer> {
  const run: RunView | null = await runs.find(request.account.id, runIdOf(request));
  if (!run) throw new NotFoundError();
  return { code: 200, data: run };
}

async function list(runs: Runs, { account, query }: AccountRequest): Promise<Answer> {
  const reader = new QueryReader(query);
  const jobId = reader.optional('job_id', integer(1, Number.MAX_SAFE_INTEGER)) ?? undefined;
  const status = reader.optional('status', oneOf(STATUSES)) ?? undefined;
  const page = reader.page();
  reader.check();
  const { runs: listed, totalCount } = await runs.list(account.id, { jobId, status }, page);
  return { code: 200, data: listed, extra: pageExtra(page, totalCount, listed.length) };
}

function reported(outcome: ReportOutcome): Answer {
  switch (outcome.kind) {
    case 'recorded':
      return { code: 200, data: outcome.run };
    case 'not_found':
      throw new NotFoundError();
    case 'conflict':
      throw new ConflictError(outcome.message);
  }
}

/** What is no number of a run names no run. */
function runIdOf(request: AccountRequest): number {
  const runId = integerIdFromText(request.param('run_id'));
  if (runId === null) throw new NotFoundError();
  return runId;
}
