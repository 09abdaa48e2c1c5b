/** Sentences about the permission sets that the operations on jobs and runs require, as of `identity/principals.ts`. */
export const REPORTERS =
  'Requires one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.';
export const TRIGGERERS =
  'Requires one of the permission sets `job_runner`, `account_admin`, `admin` and `developer`, on any plan.';
