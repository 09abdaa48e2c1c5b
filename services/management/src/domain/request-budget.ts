import { integerIdFromText } from '@runhook/contract';
import { type Principal, scopeIn } from './principal.ts';

/**
 * Whose limit of requests a call counts against: the account it names, when the caller has a part in it. Otherwise the
 * caller's own, a token's account or the user: nobody uses up the budget of somebody else's account.
 * @param accountIdText as the path has it; null when the path names no account
 */
export function requestBudget(principal: Principal, accountIdText: string | null): string {
  const accountId = accountIdText === null ? null : integerIdFromText(accountIdText);
  const scope = accountId === null ? null : scopeIn(principal, accountId);
  if (scope) return `account:${scope.account.id}`;
  return principal.kind === 'user' ? `user:${principal.userId}` : `account:${principal.account.id}`;
}
