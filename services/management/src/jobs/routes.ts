import { type Problem, problemsOf, textWithoutNul, VALIDATION_OPTIONS } from '@runhook/contract';
import { createJob, type Database, type JobView, type Queryable, runStatement } from '@runhook/database';
import Joi from 'joi';
import { type AccountEndpoint, READ_RUNS, REPORT_RUNS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { InvalidRequestError } from '../http/errors.ts';
import { idList, QueryReader, searchText } from '../http/query-parameters.ts';
import { containsText } from '../http/sql-text.ts';

const JOBS = '/api/v2/accounts/:account_id/jobs';

/** `POST …/jobs/` and `GET …/jobs/` (docs/contract.md#runs-and-jobs). */
export function jobsEndpoints(database: Pick<Database, 'prisma' | 'pool'>): AccountEndpoint[] {
  return [
    {
      method: 'POST',
      path: JOBS,
      access: REPORT_RUNS,
      async handle({ account, body }) {
        const { fields, problems } = parseJob(body);
        if (problems) throw new InvalidRequestError(problems);
        return { code: 201, data: await addJob(database.prisma, account.id, fields) };
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
        const { jobs, totalCount } = await listJobs(database.pool, account.id, { filters, ...page });
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

export function parseJob(body: unknown): JobParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'body') } : { fields: value };
}

/** Ids come as text: they are bigint. */
type JobRow = Record<keyof JobView, string>;

const SELECT_JOBS = `
  SELECT jobs.id, jobs.account_id, jobs.name, project_id, projects.name AS project_name,
    environment_id, environments.name AS environment_name
  FROM jobs JOIN projects ON projects.id = project_id JOIN environments ON environments.id = environment_id
  WHERE jobs.account_id = $1`;

export async function findJob(
  database: Queryable,
  accountId: number,
  jobId: number,
): Promise<JobView | null> {
  const [row] = await runStatement<JobRow>(database, `${SELECT_JOBS} AND jobs.id = $2`, [accountId, jobId]);
  return row ? toView(row) : null;
}

/** Null filters let everything through. */
export interface JobFilters {
  ids: readonly number[] | null;
  /** In the name, or the beginning of the id. */
  search: string | null;
}

const MATCHING = `
  ($2::bigint[] IS NULL OR jobs.id = ANY($2))
  AND ($3::text IS NULL OR ${containsText('$3', ['jobs.name'])} OR starts_with(jobs.id::text, $3))`;

/** A page of the account's jobs, newest first, and how many match in all. */
export async function listJobs(
  database: Queryable,
  accountId: number,
  query: { filters: JobFilters; limit: number; offset: number },
): Promise<{ jobs: JobView[]; totalCount: number }> {
  const { filters, limit, offset } = query;
  const values = [accountId, filters.ids, filters.search];
  const page = `${SELECT_JOBS} AND ${MATCHING} ORDER BY jobs.id DESC LIMIT $4 OFFSET $5`;
  const count = `SELECT count(*) FROM jobs WHERE account_id = $1 AND ${MATCHING}`;
  const [rows, [total]] = await Promise.all([
    runStatement<JobRow>(database, page, [...values, limit, offset]),
    runStatement<{ count: string }>(database, count, values),
  ]);
  return { jobs: rows.map(toView), totalCount: Number(total?.count) };
}

export async function addJob(
  prisma: Database['prisma'],
  accountId: number,
  fields: JobFields,
): Promise<JobView> {
  const { name, project_name: projectName, environment_name: environmentName } = fields;
  return await createJob(prisma, { accountId, name, projectName, environmentName });
}

function toView(row: JobRow): JobView {
  return {
    id: Number(row.id),
    account_id: Number(row.account_id),
    name: row.name,
    project_id: Number(row.project_id),
    project_name: row.project_name,
    environment_id: Number(row.environment_id),
    environment_name: row.environment_name,
  };
}
