import type { Database } from '@runhook/database';
import { addJob, listJobs } from '../../data/jobs.ts';
import { parseJob } from '../../domain/jobs-request.ts';
import { READ_RUNS, REPORT_RUNS } from '../authorize.ts';
import type { AccountEndpoint } from '../endpoint.ts';
import { InvalidRequestError } from '../errors.ts';
import { pageExtra } from '../page-extra.ts';
import { idList, QueryReader, searchText } from '../query-parameters.ts';

const JOBS = '/api/v2/accounts/:account_id/jobs';

/** `POST …/jobs/` and `GET …/jobs/` (DESIGN, section 4, "Runs API"). */
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
