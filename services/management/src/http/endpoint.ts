import { integerIdFromText, webhooksUnavailableReason } from '@runhook/contract';
import {
  type Account,
  type Action,
  type Caller,
  missingPermission,
  type Principal,
  scopeIn,
  type UserPrincipal,
} from '../identity/principals.ts';
import type { Answer } from './envelope.ts';
import { AccessDeniedError, NotFoundError } from './errors.ts';
import type { Keeper, KeptAnswer } from './idempotency.ts';

/** A request with its JSON body read. */
export interface OpenRequest {
  /** A parameter of the path pattern, by name. */
  param(name: string): string;
  /** A repeated parameter is an array. */
  query: Readonly<Record<string, string | string[] | undefined>>;
  /** Of POST and PUT; undefined when the request has none. */
  body: unknown;
  header(name: string): string | undefined;
  /** IPv4 or IPv6, as reported by the proxies that are trusted. */
  clientAddress: string;
  /** Whether it came over https, as reported by the proxies that are trusted. */
  secure: boolean;
  /**
   * To be called as the last thing before the COMMIT of what changes something, and before anything is sent outside. Throws when
   * the caller was refused meanwhile. Where there is `keep`, that calls it.
   */
  beforeCommit(): void;
}

/** A request that passed authentication. */
export interface CallerRequest extends OpenRequest, Caller {}

/** A request that passed authorization too. */
export interface AccountRequest extends CallerRequest {
  account: Account;
}

/**
 * A request that may change something of an account: its answer goes through `keep` in the transaction of its work, which
 * keeps that of a POST for the case that it is repeated, and lets no work be committed whose caller was refused.
 */
export interface WriteRequest extends AccountRequest {
  keep: Keeper;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** One method of one path. Throws `ApiError`s; whatever else it throws is a 500 or a 503. */
interface EndpointOf<Path extends string, Request, OfMethod extends Method = Method, Answered = Answer> {
  method: OfMethod;
  /** An Express pattern with no slash at its end. */
  path: Path;
  /**
   * Of one that waits for a server of somebody else: how much longer than every request it may take before the caller gets
   * a 503. It takes no place of its account, which are for work at the database.
   */
  extraMs?: number;
  /** A GET that does something outside: it needs what a POST needs of a console session. */
  hasEffect?: true;
  /** Of the request, in bytes; `BODY_BYTES_MAX.usual` when omitted. */
  bodyBytesMax?: number;
  /** Members and items of it, on all levels; 5,000 when omitted. */
  bodyValuesMax?: number;
  handle(request: Request): Promise<Answered>;
}

type AccountPath = `${string}/:account_id` | `${string}/:account_id/${string}`;

interface AccountWrite extends EndpointOf<AccountPath, WriteRequest, Exclude<Method, 'GET'>, KeptAnswer> {
  access: Access;
  /**
   * Its own statement checks the version of the caller, so that may be remembered; and without an `Idempotency-Key` it is
   * committed with what others write, so it takes no place of its account.
   */
  isCommittedTogether?: true;
}

interface AccountRead extends EndpointOf<AccountPath, AccountRequest, 'GET'> {
  access: Access;
}

/** Concerns the account that its path names. */
export type AccountEndpoint = AccountWrite | AccountRead;

/** Concerns the caller itself; which callers it takes is its own affair. */
export interface CallerEndpoint extends EndpointOf<string, CallerRequest> {
  access: 'caller';
}

/** Takes requests without credentials, and looks at none. */
export interface OpenEndpoint extends EndpointOf<string, OpenRequest> {
  access: 'anyone';
}

export type Endpoint = AccountEndpoint | CallerEndpoint | OpenEndpoint;

/** Longer than the database and the queue take to be found unavailable. */
export const DEADLINE_MS = 6_000;

/** What an endpoint asks of its caller. */
export interface Access {
  action: Action;
  /** Adds the gate of the account's plan and deployment. */
  webhooks: boolean;
  /** Whether a call counts against the account's limit of requests. The Runs API's do not (docs/contract.md#rate-limits). */
  metered: boolean;
}

export const READ_WEBHOOKS: Access = { action: 'read', webhooks: true, metered: true };
export const WRITE_WEBHOOKS: Access = { action: 'write_webhooks', webhooks: true, metered: true };
export const READ_ACCOUNT: Access = { action: 'read', webhooks: false, metered: true };
/** On every plan: members and sign-ins are there, too. */
export const READ_AUDIT: Access = { action: 'read_audit', webhooks: false, metered: true };
export const READ_RUNS: Access = { action: 'read', webhooks: false, metered: false };
export const REPORT_RUNS: Access = { action: 'report_runs', webhooks: false, metered: false };

const UNAVAILABLE = {
  plan: 'Webhooks are available on the Team and Enterprise plans only.',
  deployment: 'Webhooks are not available on this deployment.',
};

const ACTION_TEXT: Record<Action, string> = {
  read: 'Reading',
  read_audit: 'Reading the audit log',
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

/** The calling user; a 403 for a service token, which is nobody. */
export function requiredUser(principal: Principal): UserPrincipal {
  if (principal.kind !== 'user') throw new AccessDeniedError('A service token is not a user.');
  return principal;
}
