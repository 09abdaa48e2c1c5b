import { integerIdFromText, webhooksUnavailableReason } from '@runhook/contract';
import {
  type Account,
  type Action,
  type Caller,
  findScope,
  missingPermission,
  type Principal,
  type UserPrincipal,
} from '../identity/principals.ts';
import type { EndpointResponse } from './envelope.ts';
import { AccessDeniedError, NotFoundError } from './errors.ts';
import type { FileUpload } from './file-upload.ts';
import type { RecordedResponse, ResponseRecorder } from './idempotency.ts';

/** A request with its JSON body read. */
export interface ParsedRequest {
  /** Returns a parameter of the path pattern by name; a wildcard's has slashes. */
  param(name: string): string;
  /** A repeated parameter is an array. */
  query: Readonly<Record<string, string | string[] | undefined>>;
  /** Body of POST and PUT; undefined if the request has none. */
  body: unknown;
  /** The body of an endpoint whose `bodyType` is `file`, instead of `body`. */
  file?: FileUpload | undefined;
  header(name: string): string | undefined;
  /** Whether the method is HEAD, which a GET endpoint answers without its body. */
  isHead: boolean;
  /** IPv4 or IPv6, as reported by trusted proxies. */
  clientAddress: string;
  /** Whether the request came over https, as reported by trusted proxies. */
  secure: boolean;
  /** Scheme and host of the request, as reported by trusted proxies. */
  origin: string;
  /**
   * Must be called immediately before the COMMIT of a change, and before any request to another server. Throws if the
   * caller has got a 503 because the deadline was missed. Handlers that use the request's `recorder` need not call it.
   */
  beforeCommit(): void;
  /**
   * Must be called by a GET before a response of more than `LARGE_BYTES` is built. The first call throws an error, by
   * which the request gives up its other slots, waits for one of few that bound the memory of the process, and is
   * handled again.
   * @throws MemoryRequiredError
   */
  requireMemory(): void;
}

/** A request that passed authentication. */
export interface CallerRequest extends ParsedRequest, Caller {}

/** A request that passed authorization too. */
export interface AccountRequest extends CallerRequest {
  account: Account;
  /**
   * Must be called after work of minutes, before its commit: throws the rejection of a caller whose credential or permission
   * has ended since the admission.
   */
  confirmAccess(): Promise<void>;
}

/**
 * A request that may change data of an account. Its response goes through the `recorder` in the transaction of its
 * work, which stores it if there is an `Idempotency-Key`, and rolls the work back if the caller has been rejected.
 */
export interface WriteRequest extends AccountRequest {
  recorder: ResponseRecorder;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A method of a path. Throws `ApiError`s; any other error becomes a 500 or a 503. */
interface EndpointBase<
  Path extends string,
  Request,
  AllowedMethod extends Method = Method,
  Result = EndpointResponse,
> {
  method: AllowedMethod;
  /** An Express pattern without a trailing slash. */
  path: Path;
  /**
   * For an endpoint that waits for an external server: the time that it may take beyond the usual deadline before the
   * caller gets a 503. It counts towards the endpoint tests of its account and needs no other slot.
   */
  extraTimeMs?: number;
  /** Marks a GET with an external effect: from a console session its origin is checked as that of a POST. */
  hasEffect?: true;
  /** Marks a GET whose response contains a secret, which must not be compressed (BREACH). */
  hasSecret?: true;
  /** Maximum size of the body in bytes; `BODY_BYTES_MAX.default` when omitted. */
  bodyBytesMax?: number;
  /**
   * `form` for a body of `application/x-www-form-urlencoded`; `file` for any bytes, which the handler receives as a stream
   * while it runs. JSON when omitted.
   */
  bodyType?: 'form' | 'file';
  /** Maximum number of members and items on all levels of the body; 5,000 when omitted. */
  bodyValuesMax?: number;
  handle(request: Request): Promise<Result>;
}

type AccountPath = `${string}/:account_id` | `${string}/:account_id/${string}`;

interface AccountWrite
  extends EndpointBase<AccountPath, WriteRequest, Exclude<Method, 'GET'>, RecordedResponse> {
  access: Access;
  /**
   * Marks an endpoint whose statement checks the version of the caller, so the caller may be cached. Without an
   * `Idempotency-Key` its writes are committed in a batch with those of others, so it needs no slot of its account.
   */
  isBatched?: true;
  /** Marks a write that first reads as an `isSlowRead` does: it needs a slot for slow reads, too. */
  isSlowRead?: true;
  /** Work that waits for another server than the database. It precedes the handler, without a slot of the account. */
  prepare?(request: AccountRequest): Promise<void>;
}

interface AccountRead extends EndpointBase<AccountPath, AccountRequest, 'GET'> {
  access: Access;
  /** Marks a read that takes the longer, the more data the account has: it needs a slot for slow reads, too. */
  isSlowRead?: true;
  /** Marks a read whose response is a file. It takes a slot of the downloads, until the file is sent. */
  isDownload?: true;
}

/** An endpoint for the account that its path names. */
export type AccountEndpoint = AccountWrite | AccountRead;

/** An endpoint for the caller itself. It decides which callers it accepts. */
export interface CallerEndpoint extends EndpointBase<string, CallerRequest> {
  access: 'caller';
}

/** An endpoint that needs no credentials and ignores any. */
export interface PublicEndpoint extends EndpointBase<string, ParsedRequest> {
  access: 'anyone';
}

export type Endpoint = AccountEndpoint | CallerEndpoint | PublicEndpoint;

/**
 * Time for the admission of a request, and again for its work, before the caller gets a 503. Must exceed the time to
 * detect that the database or the queue is unavailable.
 */
export const DEADLINE_MS = 6_000;

/** Header with which a runner proves that it still has the run that it claimed. */
export const LEASE_TOKEN_HEADER = 'Lease-Token';

/** Requirements that an endpoint has for its caller. */
export interface Access {
  action: Action;
  /** Whether the plan and deployment of the account must include webhooks. */
  webhooks: boolean;
  /** Whether calls count towards the rate limit; those of the Runs API do not (docs/contract.md#rate-limits). */
  metered: boolean;
}

export const READ_WEBHOOKS: Access = { action: 'read', webhooks: true, metered: true };
export const WRITE_WEBHOOKS: Access = { action: 'write_webhooks', webhooks: true, metered: true };
export const READ_ACCOUNT: Access = { action: 'read', webhooks: false, metered: true };
/** Access to the audit log: on every plan, since it also has members and sign-ins. */
export const READ_AUDIT: Access = { action: 'read_audit', webhooks: false, metered: true };
export const READ_TOKENS: Access = { action: 'read_tokens', webhooks: false, metered: true };
export const READ_RUNS: Access = { action: 'read', webhooks: false, metered: false };
export const REPORT_RUNS: Access = { action: 'report_runs', webhooks: false, metered: false };
export const TRIGGER_RUNS: Access = { action: 'trigger_runs', webhooks: false, metered: false };
/** Access to changes of jobs: metered, because all processes then read their cached callers and jobs again. */
export const CHANGE_JOBS: Access = { ...REPORT_RUNS, metered: true };

const UNAVAILABLE = {
  plan: 'Webhooks are available on the Team and Enterprise plans only.',
  deployment: 'Webhooks are not available on this deployment.',
};

const ACTION_TEXT: Record<Action, string> = {
  read: 'Reading',
  read_audit: 'Reading the audit log',
  read_tokens: 'Reading the service tokens',
  write_webhooks: 'Writing webhooks',
  report_runs: 'Creating jobs and reporting runs',
  trigger_runs: 'Triggering and cancelling runs',
};

/**
 * Returns the account of the path if the caller may perform the action on it. A missing account gives the same error as
 * another customer's account.
 */
export function authorize(principal: Principal, accountIdText: string, access: Access): Account {
  if (!/^\d+$/.test(accountIdText)) throw new NotFoundError();
  const accountId = integerIdFromText(accountIdText);
  const scope = accountId === null ? null : findScope(principal, accountId);
  if (!scope) throw new AccessDeniedError('Token is not scoped to account.');
  const { account, holder } = scope;
  const unavailable = access.webhooks ? webhooksUnavailableReason(account) : null;
  if (unavailable) throw new AccessDeniedError(UNAVAILABLE[unavailable]);
  const missing = missingPermission(access.action, account.plan, holder);
  if (missing) throw new AccessDeniedError(`${ACTION_TEXT[access.action]} needs ${missing}.`);
  return account;
}

/** Throws a 403 for a service token. */
export function requireUser(principal: Principal): UserPrincipal {
  if (principal.kind !== 'user') throw new AccessDeniedError('A service token is not a user.');
  return principal;
}
