import { nameText, type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import { insertJob, type JobView, jobView } from '@runhook/database';
import { containsText, inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { type AccountEndpoint, READ_RUNS, REPORT_RUNS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { idList, orderOf, QueryReader, searchText } from '../http/query-parameters.ts';
import {
  type EnvironmentView,
  environmentViews,
  idParameter,
  type ProjectView,
  pathId,
  projectEndpoints,
  projectViews,
} from './projects.ts';

const JOBS_PATH = '/api/v2/accounts/:account_id/jobs';

/** The jobs of an account, with their projects and environments (docs/contract.md#runs-and-jobs). */
export function jobsEndpoints({
  prisma,
  jobsMax,
}: {
  prisma: PrismaClient;
  /** Maximum number of jobs of an account. */
  jobsMax: number;
}): AccountEndpoint[] {
  return [
    {
      method: 'POST',
      path: JOBS_PATH,
      access: REPORT_RUNS,
      async handle({ account, body, recorder }) {
        const { fields, problems } = parseJob(body);
        if (problems) throw new InvalidRequestError(problems);
        const { name, project_name: projectName, environment_name: environmentName } = fields;
        const job = { accountId: account.id, name, projectName, environmentName };
        return await inPrismaTransaction(prisma, async (transaction) => {
          // Concurrent calls do not see each other and may exceed the limit by a few.
          if ((await transaction.job.count({ where: { accountId: BigInt(account.id) } })) >= jobsMax)
            throw new ConflictError(`The account has ${jobsMax} jobs, the maximum.`);
          const data = await insertJob(transaction, job);
          return await recorder.recordWithPrisma(transaction, { code: 201, data });
        });
      },
    },
    {
      method: 'GET',
      path: JOBS_PATH,
      access: READ_RUNS,
      isSlowRead: true,
      async handle({ account, query }) {
        const reader = new QueryReader(query);
        const page = reader.page();
        const filters = {
          ids: reader.optional('ids', idList),
          search: reader.optional('search', searchText),
          projectId: reader.optional('project_id', idParameter),
          environmentId: reader.optional('environment_id', idParameter),
        };
        const order = reader.optional('order_by', orderOf(JOB_ORDERS));
        const related = reader.optional('include_related', relatedNames);
        reader.check();
        const { jobs, totalCount } = await listJobs(prisma, account.id, { filters, order, ...page });
        const data = await addRelated(prisma, account.id, jobs, related);
        return { code: 200, data, extra: pageExtra(page, totalCount, jobs.length) };
      },
    },
    {
      method: 'GET',
      path: `${JOBS_PATH}/:job_id`,
      access: READ_RUNS,
      async handle(request) {
        const { account, query } = request;
        const reader = new QueryReader(query);
        const related = reader.optional('include_related', relatedNames);
        reader.check();
        const where = { accountId: BigInt(account.id), id: pathId(request, 'job_id') };
        const found = await prisma.job.findMany({ where, include: RELATED_ROWS });
        const [job] = await addRelated(prisma, account.id, found.map(jobView), related);
        if (job === undefined) throw new NotFoundError();
        return { code: 200, data: job };
      },
    },
    ...projectEndpoints({ prisma }),
  ];
}

const RELATED_ROWS = { project: true, environment: true } as const;

export const JOB_ORDERS = ['id', 'name', 'created_at'] as const;

/** A job with the objects that `include_related` requests. */
export interface JobResponse extends JobView {
  project?: ProjectView;
  environment?: EnvironmentView;
}

/** Clients send a list in brackets, with or without quotes, which may contain names that do not exist here. */
function relatedNames(text: string) {
  return { value: new Set(text.match(/\w+/g)) };
}

async function addRelated(
  prisma: PrismaClient,
  accountId: number,
  jobs: readonly JobView[],
  related: ReadonlySet<string> | null,
): Promise<JobResponse[]> {
  const relatedRows = (kind: 'project' | 'environment') =>
    jobs.map((job) => ({
      id: BigInt(job[`${kind}_id`]),
      accountId: BigInt(accountId),
      name: job[`${kind}_name`],
    }));
  const [projects, environments] = await Promise.all([
    related?.has('project') ? projectViews(prisma, accountId, relatedRows('project')) : [],
    related?.has('environment') ? environmentViews(prisma, accountId, relatedRows('environment'), null) : [],
  ]);
  return jobs.map((job, index) => {
    const [project, environment] = [projects[index], environments[index]];
    return {
      ...job,
      ...(project && { project }),
      ...(environment && { environment: { ...environment, project_id: job.project_id } }),
    };
  });
}

/** Limit of the names of a job, its project and its environment. */
export const JOB_NAME_CHARACTERS_MAX = 255;

/** Body of `POST …/jobs/` (docs/contract.md#runs-and-jobs). */
export interface JobFields {
  name: string;
  project_name: string;
  environment_name: string;
}

const schema = Joi.object<JobFields>({
  name: nameText(JOB_NAME_CHARACTERS_MAX).required(),
  project_name: nameText(JOB_NAME_CHARACTERS_MAX).required(),
  environment_name: nameText(JOB_NAME_CHARACTERS_MAX).required(),
});

export type JobParsing = { fields: JobFields; problems?: never } | { fields?: never; problems: Problem[] };

function parseJob(body: unknown): JobParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}

/** Null filters match everything. */
interface JobFilters {
  ids: readonly number[] | null;
  /** Matches a part of the name, or the start of the id. */
  search: string | null;
  projectId: number | null;
  environmentId: number | null;
}

/** Returns a page of the account's jobs, newest first by default, and the number of matches. */
async function listJobs(
  prisma: PrismaClient,
  accountId: number,
  query: {
    filters: JobFilters;
    order: { by: (typeof JOB_ORDERS)[number]; isDescending: boolean } | null;
    limit: number;
    offset: number;
  },
): Promise<{ jobs: JobView[]; totalCount: number }> {
  const { filters, limit, offset } = query;
  const { by, isDescending } = query.order ?? { by: 'id', isDescending: true };
  const direction = isDescending ? 'desc' : 'asc';
  const where = { accountId: BigInt(accountId), ...jobConditions(filters) };
  const [jobs, totalCount] = await Promise.all([
    prisma.job.findMany({
      where,
      include: RELATED_ROWS,
      // Ids are assigned in the order of creation.
      orderBy: by === 'name' ? [{ name: direction }, { id: direction }] : { id: direction },
      take: limit,
      skip: offset,
    }),
    prisma.job.count({ where }),
  ]);
  return { jobs: jobs.map(jobView), totalCount };
}

function jobConditions({ ids, search, projectId, environmentId }: JobFilters): Prisma.JobWhereInput {
  return {
    ...(projectId !== null && { projectId: BigInt(projectId) }),
    ...(environmentId !== null && { environmentId: BigInt(environmentId) }),
    ...(ids !== null && { id: { in: ids.map(BigInt) } }),
    ...(search !== null && {
      OR: [{ name: containsText(search) }, ...idRangesWithPrefix(search).map((id) => ({ id }))],
    }),
  };
}

/**
 * Returns the ids whose digits start with the text, as ranges of numbers, which an index finds: 12 is 12, 120 to 129,
 * 1200 to 1299 and so on. Returns none if no id starts with the text.
 */
export function idRangesWithPrefix(text: string): { gte: bigint; lte: bigint }[] {
  if (!/^[1-9]\d*$/.test(text)) return [];
  const ranges: { gte: bigint; lte: bigint }[] = [];
  const powerOfTen = (count: number) => 10n ** BigInt(count);
  for (let digitCount = 0; BigInt(text) * powerOfTen(digitCount) <= BIGINT_MAX; digitCount++) {
    const last = (BigInt(text) + 1n) * powerOfTen(digitCount) - 1n;
    ranges.push({ gte: BigInt(text) * powerOfTen(digitCount), lte: last < BIGINT_MAX ? last : BIGINT_MAX });
  }
  return ranges;
}

/** The maximum of a bigint in PostgreSQL. */
const BIGINT_MAX = 2n ** 63n - 1n;
