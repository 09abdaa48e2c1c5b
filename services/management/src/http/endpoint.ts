import type { Account, Caller } from '../domain/principal.ts';
import type { Access } from './authorize.ts';
import type { Answer } from './envelope.ts';

/** A request with its JSON body read. */
export interface OpenRequest {
  /** A parameter of the path pattern, by name. */
  param(name: string): string;
  /** A repeated parameter is an array. */
  query: Readonly<Record<string, string | string[] | undefined>>;
  /** Of POST and PUT; undefined when the request has none. */
  body: unknown;
  header(name: string): string | undefined;
  /** IPv4 or IPv6, as told by the proxies that are trusted. */
  clientAddress: string;
  /** Whether it came over https, as told by the proxies that are trusted. */
  secure: boolean;
}

/** A request that passed authentication. */
export interface CallerRequest extends OpenRequest, Caller {}

/** A request that passed authorization too. */
export interface AccountRequest extends CallerRequest {
  account: Account;
}

/** One method of one path. Throws `ApiError`s; whatever else it throws is a 500 or a 503. */
interface EndpointOf<Path extends string, Request> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** An Express pattern with no slash at its end. */
  path: Path;
  /** How long it may take before the caller gets a 503; {@link DEADLINE_MS} when omitted. */
  deadlineMs?: number;
  /** A GET that does something outside: it needs what a POST needs of a console session. */
  hasEffect?: true;
  handle(request: Request): Promise<Answer>;
}

/** Concerns the account that its path names. */
export interface AccountEndpoint extends EndpointOf<`${string}/:account_id/${string}`, AccountRequest> {
  access: Access;
}

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
