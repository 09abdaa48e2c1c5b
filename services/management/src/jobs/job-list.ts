import { containsText, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { idList, orderOf, type Page, type QueryReader, searchText } from '../http/query-parameters.ts';
import { JOB_ROWS, type JobRow } from './job-response.ts';
import { readAccountId, readIds, readNameConditions, readState } from './list-filters.ts';

export const JOB_ORDERS = ['id', 'name', 'created_at'] as const;

export const jobOrder = orderOf(JOB_ORDERS);

interface JobQuery {
  where: Prisma.JobWhereInput;
  orderBy: Prisma.JobOrderByWithRelationInput[];
  page: Page;
}

/** Reads the parameters of the list of jobs. */
export function readJobQuery(reader: QueryReader, accountId: number): JobQuery {
  readAccountId(reader, accountId);
  const page = reader.page();
  const ids = reader.optional('ids', idList);
  const search = reader.filter('search', searchText);
  const conditions: Prisma.JobWhereInput[] = [
    ...(search === null ? [] : [searchCondition(search)]),
    ...readNameConditions(reader, ['name__icontains']),
    ...(ids === null ? [] : [{ id: { in: ids.map(BigInt) } }]),
    ...readIds(reader, { lists: ['id__in'] }).map((id) => ({ id })),
    ...readIds(reader, { one: 'project_id', lists: ['project_id__in'] }).map((projectId) => ({ projectId })),
    ...readIds(reader, { one: 'environment_id', lists: ['environment_id__in'] }).map((environmentId) => ({
      environmentId,
    })),
  ];
  const { by, isDescending } = reader.filter('order_by', jobOrder) ?? { by: 'id', isDescending: true };
  const direction = isDescending ? 'desc' : 'asc';
  return {
    where: {
      accountId: BigInt(accountId),
      deletedAt: readState(reader) === 1 ? null : { not: null },
      AND: conditions,
    },
    // Ids are assigned in the order of creation.
    orderBy: by === 'name' ? [{ name: direction }, { id: direction }] : [{ id: direction }],
    page,
  };
}

/** Returns a page of jobs, newest first by default, and the number of matches. */
export async function listJobs(
  prisma: PrismaClient,
  { where, orderBy, page }: JobQuery,
): Promise<{ rows: JobRow[]; totalCount: number }> {
  const [rows, totalCount] = await Promise.all([
    prisma.job.findMany({ where, include: JOB_ROWS, orderBy, take: page.limit, skip: page.offset }),
    prisma.job.count({ where }),
  ]);
  return { rows, totalCount };
}

function searchCondition(search: string): Prisma.JobWhereInput {
  return { OR: [{ name: containsText(search) }, ...idRangesWithPrefix(search).map((id) => ({ id }))] };
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
