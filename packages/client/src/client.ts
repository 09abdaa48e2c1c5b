import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type Answer,
  addressOf,
  type Data,
  type ListPath,
  type Method,
  type PathOf,
  type RequestParts,
  type Row,
} from './calls.ts';
import { type Change, listen } from './changes.ts';
import { noAnswer, RunhookError, refusalOf } from './errors.ts';

export interface ClientOptions {
  /** Where the service is: `https://runhook.example.com`, or with the path that it is below. */
  url: string;
  /** An API key or a service token. */
  token: string;
  /** Stands for `account_id` wherever a call does not give one. */
  accountId?: number | undefined;
  /** How often a call is tried again that was not done; default 3. */
  retriesMax?: number;
  /** A `Retry-After` longer than this is not waited for; default 60. */
  retryAfterSecondsMax?: number;
  /** Of one try; default 30,000. */
  timeoutMs?: number;
  /** Before the client's own in `User-Agent`. */
  userAgent?: string;
}

/** The account of the client stands in where none is given. */
type Parts<M extends Method, P extends PathOf<M>> = Omit<RequestParts<M, P>, 'path'> &
  WithoutAccount<RequestParts<M, P>> & {
    /** Of a POST; made by the client unless given, so that one which is tried again is not done twice. */
    idempotencyKey?: string;
  };
type WithoutAccount<Request> = Request extends { path: infer InPath }
  ? 'account_id' extends keyof InPath
    ? keyof InPath extends 'account_id'
      ? { path?: Partial<InPath> }
      : { path: Omit<InPath, 'account_id'> & { account_id?: InPath['account_id'] } }
    : { path: InPath }
  : { path?: never };
/** Left out when nothing of it must be given. */
type Rest<Value> = object extends Value ? [parts?: Value] : [parts: Value];

/** A page of a list as it was answered. */
export type Page<P extends ListPath> = Pick<
  Answer<'get', P> & { data: unknown; extra: unknown },
  'data' | 'extra'
>;

/** The management API. All paths are those of its OpenAPI document; what the envelope holds is answered. */
export interface Client {
  get<P extends PathOf<'get'>>(path: P, ...rest: Rest<Parts<'get', P>>): Promise<Data<'get', P>>;
  post<P extends PathOf<'post'>>(path: P, ...rest: Rest<Parts<'post', P>>): Promise<Data<'post', P>>;
  put<P extends PathOf<'put'>>(path: P, ...rest: Rest<Parts<'put', P>>): Promise<Data<'put', P>>;
  delete<P extends PathOf<'delete'>>(path: P, ...rest: Rest<Parts<'delete', P>>): Promise<Data<'delete', P>>;
  /** One page, with its `extra`. */
  page<P extends ListPath>(path: P, ...rest: Rest<Parts<'get', P>>): Promise<Page<P>>;
  /** Every row, page after page; those that are asked for only when they are come to. */
  list<P extends ListPath>(path: P, ...rest: Rest<Parts<'get', P>>): AsyncGenerator<Row<P>, void>;
  /** @param webhookId whose log is watched, too: what waits without an attempt is told as well */
  changes(options?: {
    accountId?: number;
    webhookId?: string;
    signal?: AbortSignal;
  }): AsyncGenerator<Change, void>;
}

/** Of this package, and of the whole: a test holds it against the root package.json. */
export const VERSION = '0.1.0';

const RETRIES_MAX = 3;
const RETRY_AFTER_SECONDS_MAX = 60;
const RETRY_MS = 250;
const TIMEOUT_MS = 30_000;
const CHANGES = '/api/v3/accounts/{account_id}/webhooks/changes';

interface UntypedParts {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  idempotencyKey?: string;
}

interface Envelope {
  data: unknown;
  extra?: {
    pagination: { count: number; total_count?: number; next_before?: string | null };
    filters: { offset?: number };
  };
}

/** Throws a TypeError for a URL that is none. Calls throw a {@link RunhookError} for whatever is not a 2xx. */
export function createClient(options: ClientOptions): Client {
  const base = new URL(options.url.endsWith('/') ? options.url : `${options.url}/`);
  if (!/^https?:$/.test(base.protocol)) throw new TypeError('url must be an http or https URL');
  const userAgent = `${options.userAgent === undefined ? '' : `${options.userAgent} `}runhook-client/${VERSION}`;
  const headersOf = (parts: UntypedParts) => ({
    accept: 'application/json',
    authorization: `Token ${options.token}`,
    'user-agent': userAgent,
    ...parts.headers,
  });
  const urlOf = (path: string, { path: inPath = {}, query = {} }: UntypedParts) =>
    new URL(addressOf(path, { account_id: options.accountId, ...withoutUndefined(inPath) }, query), base);

  async function call(method: Method, path: string, parts: UntypedParts = {}): Promise<Envelope> {
    const url = urlOf(path, parts);
    const { body, signal } = parts;
    const key =
      parts.idempotencyKey ?? (method === 'post' && path.includes('{account_id}') ? randomUUID() : undefined);
    const request = {
      method: method.toUpperCase(),
      headers: {
        ...headersOf(parts),
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const mayRepeat = method === 'get' || method === 'put' || key !== undefined;
    return await repeated(options, { mayRepeat, signal }, () =>
      envelopeOf(url, request, options.timeoutMs, signal),
    );
  }

  async function data(method: Method, path: string, [parts]: unknown[]): Promise<never> {
    return (await call(method, path, parts as UntypedParts)).data as never;
  }

  async function* list(path: string, parts: UntypedParts = {}): AsyncGenerator<never, void> {
    let from: Record<string, unknown> = {};
    while (true) {
      const { data: rows, extra } = await call('get', path, { ...parts, query: { ...parts.query, ...from } });
      yield* rows as never[];
      if (extra === undefined) return;
      const { count, total_count: total = 0, next_before: before } = extra.pagination;
      const offset = (extra.filters.offset ?? 0) + count;
      if (before === undefined ? count === 0 || offset >= total : before === null) return;
      from = before === undefined ? { offset } : { before };
    }
  }

  return {
    get: (path, ...rest) => data('get', path, rest),
    post: (path, ...rest) => data('post', path, rest),
    put: (path, ...rest) => data('put', path, rest),
    delete: (path, ...rest) => data('delete', path, rest),
    page: async (path, ...[parts]) => (await call('get', path, parts as UntypedParts)) as never,
    list: (path, ...[parts]) => list(path, parts as UntypedParts),
    changes({ accountId, webhookId, signal } = {}) {
      const parts = { path: { account_id: accountId }, query: { subscription_id: webhookId } };
      const headers = { ...headersOf({}), accept: 'text/event-stream' };
      return listen((given) => fetch(urlOf(CHANGES, parts), { headers, signal: given }), signal);
    },
  };
}

function withoutUndefined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

async function envelopeOf(
  url: URL,
  request: RequestInit,
  timeoutMs = TIMEOUT_MS,
  signal: AbortSignal | undefined,
): Promise<Envelope> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      ...request,
      // The token is for this server, not for whoever it may send us to.
      redirect: 'manual',
      signal: signal === undefined ? late : AbortSignal.any([late, signal]),
    });
    if (!response.ok) throw await refusalOf(response);
    const answer = (await response.json().catch(() => null)) as Envelope | null;
    if (typeof answer === 'object' && answer !== null && 'data' in answer) return answer;
    throw new RunhookError(response.status, 'What answers there is not Runhook.');
  } catch (error) {
    if (error instanceof RunhookError || signal?.aborted) throw error;
    throw noAnswer(error);
  }
}

/** What was not done is tried again: refused for the moment, or, when it may be done twice, not answered. */
async function repeated<T>(
  { retriesMax = RETRIES_MAX, retryAfterSecondsMax = RETRY_AFTER_SECONDS_MAX }: ClientOptions,
  { mayRepeat, signal }: { mayRepeat: boolean; signal: AbortSignal | undefined },
  attempt: () => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RunhookError) || tries >= retriesMax) throw error;
      const { status, retryAfterSeconds } = error;
      // A 409 with Retry-After means that the first request with the key is still running.
      const isKeyInUse = status === 409 && retryAfterSeconds !== null;
      if (status !== 429 && !isKeyInUse && !(mayRepeat && (status === 0 || status === 503))) throw error;
      if ((retryAfterSeconds ?? 0) > retryAfterSecondsMax) throw error;
      const pauseMs = retryAfterSeconds === null ? RETRY_MS * 2 ** tries : 1_000 * retryAfterSeconds;
      await wait(pauseMs, undefined, { ...(signal && { signal }) });
    }
  }
}
