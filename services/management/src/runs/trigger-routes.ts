import { integerIdFromText } from '@runhook/contract';
import type { BaseUrl } from '../http/base-url.ts';
import { BODY_BYTES_MAX } from '../http/body.ts';
import { type AccountEndpoint, TRIGGER_RUNS, type WriteRequest } from '../http/endpoint.ts';
import { NotFoundError } from '../http/errors.ts';
import { RUNS_PATH, runIdOf } from './read-routes.ts';
import { reportingOf, reportResponse } from './routes.ts';
import { runResponse } from './run-response.ts';
import type { RunWaits } from './run-waits.ts';
import type { Runs } from './runs.ts';
import { parseTrigger } from './trigger-fields.ts';
import type { TriggerCall, Triggers } from './triggers.ts';

const JOB_PATH = '/api/v2/accounts/:account_id/jobs/:job_id';

export interface TriggerEndpointDependencies {
  runs: Runs;
  triggers: Triggers;
  waits: Pick<RunWaits, 'notify'>;
  baseUrl: BaseUrl;
}

/** Triggers, cancels and retries runs (docs/contract.md#triggered-runs). */
export function triggerEndpoints(deps: TriggerEndpointDependencies): AccountEndpoint[] {
  const { triggers } = deps;
  const trigger = (
    path: `${typeof JOB_PATH}/${string}` | `${typeof RUNS_PATH}/${string}`,
    create: (call: TriggerCall, request: WriteRequest) => ReturnType<Triggers['rerun']>,
  ): AccountEndpoint => ({
    method: 'POST',
    path,
    access: TRIGGER_RUNS,
    bodyBytesMax: BODY_BYTES_MAX.run,
    handle: (request) => create(callOf(deps, request), request),
  });
  return [
    trigger(`${JOB_PATH}/run`, (call, request) => {
      const options = parseTrigger(request.body);
      return triggers.trigger(call, jobIdOf(request), options);
    }),
    {
      ...trigger(`${JOB_PATH}/rerun`, (call, request) => triggers.rerun(call, jobIdOf(request))),
      isSlowRead: true,
    },
    trigger(`${RUNS_PATH}/:run_id/retry`, (call, request) => triggers.retry(call, runIdOf(request))),
    {
      method: 'POST',
      path: `${RUNS_PATH}/:run_id/cancel`,
      access: TRIGGER_RUNS,
      async handle(request) {
        const { runs, waits, baseUrl } = deps;
        const reporting = { ...reportingOf(request), leaseToken: null };
        const response = await runs.cancel(reporting, runIdOf(request), reportResponse(baseUrl(request)));
        waits.notify(request.account.id);
        return response;
      },
    },
  ];
}

function callOf({ baseUrl }: TriggerEndpointDependencies, request: WriteRequest): TriggerCall {
  return {
    accountId: request.account.id,
    recorder: request.recorder,
    // 200 and not 201, because clients of this API family accept no other code.
    createResponse: (run) => ({ code: 200, data: runResponse(run, { baseUrl: baseUrl(request) }) }),
  };
}

/** Throws a 404 for text that is not a job id. */
function jobIdOf(request: WriteRequest): number {
  const jobId = integerIdFromText(request.param('job_id'));
  if (jobId === null) throw new NotFoundError();
  return jobId;
}
