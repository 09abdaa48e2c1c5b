import { inPrismaTransaction, type PrismaClient } from '@runhook/database/prisma';
import type { BaseUrl } from '../http/base-url.ts';
import { BODY_BYTES_MAX } from '../http/body.ts';
import { type AccountEndpoint, CHANGE_JOBS, READ_RUNS, REPORT_RUNS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { relatedNames } from '../http/include-related.ts';
import { QueryReader } from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { addRelated, JOB_RELATED } from './add-related.ts';
import { jobOrder, listJobs, readJobQuery } from './job-list.ts';
import { parseJobUpdate, parseNewJob } from './job-request.ts';
import { JOB_ROWS, jobResponse } from './job-response.ts';
import { hideJob, insertJob, type JobKey, updateJob, webhooksOf } from './job-writes.ts';
import { pathId, projectEndpoints } from './projects.ts';

const JOBS_PATH = '/api/v2/accounts/:account_id/jobs';
const JOB_PATH = `${JOBS_PATH}/:job_id` as const;

export interface JobsEndpointDependencies {
  prisma: PrismaClient;
  reads: ReplicaReads;
  baseUrl: BaseUrl;
  /** Maximum number of jobs of an account. */
  jobsMax: number;
}

/** The jobs of an account, with their projects and environments (docs/contract.md#jobs). */
export function jobsEndpoints(deps: JobsEndpointDependencies): AccountEndpoint[] {
  return [
    createEndpoint(deps),
    listEndpoint(deps),
    getEndpoint(deps),
    updateEndpoint(deps),
    deleteEndpoint(deps),
    ...projectEndpoints(deps),
  ];
}

function createEndpoint({ prisma, jobsMax }: JobsEndpointDependencies): AccountEndpoint {
  return {
    method: 'POST',
    path: JOBS_PATH,
    access: REPORT_RUNS,
    bodyBytesMax: BODY_BYTES_MAX.run,
    async handle({ account, body, recorder }) {
      const { request, problems } = parseNewJob(body, account.id);
      if (problems) throw new InvalidRequestError(problems);
      return await inPrismaTransaction(prisma, async (transaction) => {
        const row = await insertJob(transaction, BigInt(account.id), request, jobsMax);
        return await recorder.recordWithPrisma(transaction, { code: 201, data: jobResponse(row) });
      });
    },
  };
}

function listEndpoint(deps: JobsEndpointDependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: JOBS_PATH,
    access: READ_RUNS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const jobQuery = readJobQuery(reader, account.id);
      const related = reader.list('include_related', relatedNames(JOB_RELATED));
      reader.check();
      const { rows, totalCount } = await listJobs(deps.prisma, jobQuery);
      const data = await addRelated(deps, request, rows, related);
      return { code: 200, data, extra: pageExtra(jobQuery.page, totalCount, data.length) };
    },
  };
}

/** A slow read, because the latest run of a job is found by reading the newest runs of the account. */
function getEndpoint(deps: JobsEndpointDependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: JOB_PATH,
    access: READ_RUNS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const related = reader.list('include_related', relatedNames(JOB_RELATED));
      // Clients send it with a single job, too, where it has nothing to order.
      reader.filter('order_by', jobOrder);
      reader.check();
      const where = { accountId: BigInt(account.id), id: pathId(request, 'job_id'), deletedAt: null };
      const rows = await deps.prisma.job.findMany({ where, include: JOB_ROWS });
      const [job] = await addRelated(deps, request, rows, related);
      if (job === undefined) throw new NotFoundError();
      return { code: 200, data: job };
    },
  };
}

function updateEndpoint({ prisma }: JobsEndpointDependencies): AccountEndpoint {
  return {
    method: 'POST',
    path: JOB_PATH,
    access: CHANGE_JOBS,
    bodyBytesMax: BODY_BYTES_MAX.run,
    async handle(request) {
      const { account, body, recorder } = request;
      const key: JobKey = { accountId: BigInt(account.id), id: pathId(request, 'job_id') };
      const { request: changes, problems } = parseJobUpdate(body, account.id, Number(key.id));
      if (problems) throw new InvalidRequestError(problems);
      return await inPrismaTransaction(prisma, async (transaction) => {
        const row = await updateJob(transaction, key, changes);
        return await recorder.recordWithPrisma(transaction, { code: 200, data: jobResponse(row) });
      });
    },
  };
}

/** Hides the job from lists and new runs. The response names the webhooks that list it, which then get nothing of it. */
function deleteEndpoint({ prisma }: JobsEndpointDependencies): AccountEndpoint {
  return {
    method: 'DELETE',
    path: JOB_PATH,
    access: CHANGE_JOBS,
    async handle(request) {
      const key: JobKey = { accountId: BigInt(request.account.id), id: pathId(request, 'job_id') };
      return await inPrismaTransaction(prisma, async (transaction) => {
        const row = await hideJob(transaction, key);
        const data = { ...jobResponse(row), webhooks: await webhooksOf(transaction, key) };
        return await request.recorder.recordWithPrisma(transaction, { code: 200, isSuccess: true, data });
      });
    },
  };
}
