import { type Problem, problemsOf, textWithoutNul, VALIDATION_OPTIONS } from '@runhook/contract';
import { insertJob, type JobView, jobView } from '@runhook/database';
import { containing, inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { type AccountEndpoint, READ_RUNS, REPORT_RUNS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { InvalidRequestError } from '../http/errors.ts';
import { idList, QueryReader, searchText } from '../http/query-parameters.ts';

const JOBS = '/api/v2/accounts/:account_id/jobs';

/** `POST …/jobs/` and `GET …/jobs/` (docs/contract.md#runs-and-jobs). */
export function jobsEndpoints({ prisma }: { prisma: PrismaClient }): AccountEndpoint[] {
  return [
    {
      method: 'POST',
      path: JOBS,
      access: REPORT_RUNS,
      async handle({ account, body, keep }) {
        const { fields, problems } = parseJob(body);
        if (problems) throw new InvalidRequestError(problems);
        const { name, project_name: projectName, environment_name: environmentName } = fields;
        const job = { accountId: account.id, name, projectName, environmentName };
        return await inPrismaTransaction(prisma, async (transaction) =>
          keep.withinPrisma(transaction, { code: 201, data: await insertJob(transaction, job) }),
        );
      },
    },
    {
      method: 'GET',
      path: JOBS,
      access: READ_RUNS,
      async handle({ account, query }) {
        const reader = new QueryReader(query);
        const page = reader.page();
        const filters = {
          ids: reader.optional('ids', idList),
          search: reader.optional('search', searchText),
        };
        reader.check();
        const { jobs, totalCount } = await listJobs(prisma, account.id, { filters, ...page });
        return { code: 200, data: jobs, extra: pageExtra(page, totalCount, jobs.length) };
      },
    },
  ];
}

/** Of a job's name, its project's and its environment's. */
export const JOB_NAME_CHARACTERS_MAX = 255;

/** Body of `POST …/jobs/` (docs/contract.md#runs-and-jobs). */
export interface JobFields {
  name: string;
  project_name: string;
  environment_name: string;
}

const schema = Joi.object<JobFields>({
  name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
  project_name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
  environment_name: textWithoutNul(JOB_NAME_CHARACTERS_MAX).required(),
});

export type JobParsing = { fields: JobFields; problems?: never } | { fields?: never; problems: Problem[] };

function parseJob(body: unknown): JobParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'body') } : { fields: value };
}

/** Null filters let everything through. */
interface JobFilters {
  ids: readonly number[] | null;
  /** In the name, or the beginning of the id. */
  search: string | null;
}

/** A page of the account's jobs, newest first, and how many match in all. */
async function listJobs(
  prisma: PrismaClient,
  accountId: number,
  query: { filters: JobFilters; limit: number; offset: number },
): Promise<{ jobs: JobView[]; totalCount: number }> {
  const { filters, limit, offset } = query;
  const where = { accountId: BigInt(accountId), ...matching(filters) };
  const [jobs, totalCount] = await Promise.all([
    prisma.job.findMany({
      where,
      include: { project: true, environment: true },
      orderBy: { id: 'desc' },
      take: limit,
      skip: offset,
    }),
    prisma.job.count({ where }),
  ]);
  return { jobs: jobs.map(jobView), totalCount };
}

function matching({ ids, search }: JobFilters): Prisma.JobWhereInput {
  return {
    ...(ids !== null && { id: { in: ids.map(BigInt) } }),
    ...(search !== null && {
      OR: [{ name: containing(search) }, ...idsBeginningWith(search).map((id) => ({ id }))],
    }),
  };
}

/**
 * The ids whose digits begin with the text, as ranges of numbers, which an index finds: 12 is 12, 120 to 129, 1200 to
 * 1299 and so on. None for what is no beginning of an id.
 */
export function idsBeginningWith(text: string): { gte: bigint; lte: bigint }[] {
  if (!/^[1-9]\d*$/.test(text)) return [];
  const ranges: { gte: bigint; lte: bigint }[] = [];
  const size = (count: number) => 10n ** BigInt(count);
  for (let more = 0; BigInt(text) * size(more) <= BIGINT_MAX; more++) {
    const last = (BigInt(text) + 1n) * size(more) - 1n;
    ranges.push({ gte: BigInt(text) * size(more), lte: last < BIGINT_MAX ? last : BIGINT_MAX });
  }
  return ranges;
}

/** The largest that a bigint of PostgreSQL can be. */
const BIGINT_MAX = 2n ** 63n - 1n;
