import type { Account, Principal } from '../domain/principal.ts';
import type { Access } from './authorize.ts';
import type { Answer } from './envelope.ts';

/** A request that passed authentication and authorization, with its JSON body read. */
export interface AccountRequest {
  account: Account;
  principal: Principal;
  /** A parameter of the path pattern, by name. */
  param(name: string): string;
  /** A repeated parameter is an array. */
  query: Readonly<Record<string, string | string[] | undefined>>;
  /** Of POST and PUT; undefined when the request has none. */
  body: unknown;
  header(name: string): string | undefined;
}

/** One method of one path under an account. Throws `ApiError`s; whatever else it throws is a 500 or a 503. */
export interface Endpoint {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** An Express pattern with `:account_id` in it and no slash at its end. */
  path: `${string}/:account_id/${string}`;
  access: Access;
  /** How long it may take before the caller gets a 503; {@link DEADLINE_MS} when omitted. */
  deadlineMs?: number;
  handle(request: AccountRequest): Promise<Answer>;
}

/** Longer than the database and the queue take to be found unavailable. */
export const DEADLINE_MS = 6_000;
