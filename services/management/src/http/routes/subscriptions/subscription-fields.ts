import { parseSubscription, type SubscriptionFields, type UrlProblem } from '@runhook/contract';
import type { Database } from '@runhook/database';
import { missingJobIds } from '../../../data/account-jobs.ts';
import type { AccountRequest } from '../../endpoint.ts';
import { InvalidRequestError } from '../../errors.ts';

/**
 * The fields of a create or an update (spec, sections 4.3 and 4.4). Throws a 400 that names every bad field, or the
 * jobs that the account does not have: whether another account has them is not told.
 */
export async function readSubscriptionFields(
  deps: { pool: Database['pool']; urlProblem: UrlProblem },
  { account, body }: AccountRequest,
): Promise<SubscriptionFields> {
  const { fields, problems } = parseSubscription(body, deps.urlProblem);
  if (problems) throw new InvalidRequestError(problems);
  const missing = await missingJobIds(deps.pool, account.id, fields.job_ids);
  if (missing.length > 0) {
    const message = `job_ids must be ids of jobs of the account; these are not: ${missing.join(', ')}`;
    throw new InvalidRequestError([{ field: 'job_ids', message }]);
  }
  return fields;
}
