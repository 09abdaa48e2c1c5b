import { integerIdFromText, webhooksUnavailableReason } from '@runhook/contract';
import { type Action, missingPermission } from '../domain/permissions.ts';
import { type Account, type Principal, scopeIn } from '../domain/principal.ts';
import { AccessDeniedError, NotFoundError } from './errors.ts';

/** What an endpoint asks of its caller. */
export interface Access {
  action: Action;
  /** Adds the gate of the account's plan and deployment. */
  webhooks: boolean;
  /** Whether a call counts against the account's limit of requests. The Runs API's do not (DESIGN, section 7). */
  metered: boolean;
}

export const READ_WEBHOOKS: Access = { action: 'read', webhooks: true, metered: true };
export const WRITE_WEBHOOKS: Access = { action: 'write_webhooks', webhooks: true, metered: true };
export const READ_RUNS: Access = { action: 'read', webhooks: false, metered: false };
export const REPORT_RUNS: Access = { action: 'report_runs', webhooks: false, metered: false };

const UNAVAILABLE = {
  plan: 'Webhooks are available on the Team and Enterprise plans only.',
  deployment: 'Webhooks are not available on this deployment.',
};

const ACTION_TEXT: Record<Action, string> = {
  read: 'Reading',
  write_webhooks: 'Writing webhooks',
  report_runs: 'Creating jobs and reporting runs',
};

/**
 * The account of the path, once the caller may do to it what the endpoint does. An account that does not exist is
 * answered like one of somebody else.
 */
export function authorize(principal: Principal, accountIdText: string, access: Access): Account {
  if (!/^\d+$/.test(accountIdText)) throw new NotFoundError();
  const accountId = integerIdFromText(accountIdText);
  const scope = accountId === null ? null : scopeIn(principal, accountId);
  if (!scope) throw new AccessDeniedError('Token is not scoped to account.');
  const { account, holder } = scope;
  const unavailable = access.webhooks ? webhooksUnavailableReason(account) : null;
  if (unavailable) throw new AccessDeniedError(UNAVAILABLE[unavailable]);
  const missing = missingPermission(access.action, account.plan, holder);
  if (missing) throw new AccessDeniedError(`${ACTION_TEXT[access.action]} needs ${missing}.`);
  return account;
}
