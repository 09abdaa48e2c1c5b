import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { type ArtifactCalls, artifactPath, UPLOAD_TIMEOUT_MS } from './artifacts.ts';
import {
  type Data,
  type ListPath,
  type Method,
  type PathOf,
  type RequestParts,
  type Row,
  requestPath,
  type SuccessEnvelope,
} from './calls.ts';
import { type Change, listen } from './changes.ts';
import { createConnectionError, parseFailure, RunhookError } from './errors.ts';

export interface ClientOptions {
  /** Address of the service, including its path prefix if it has one: `https://runhook.example.com`. */
  url: string;
  /** An API key or a service token. */
  token: string;
  /** Default of `account_id` in all calls. */
  accountId?: number | undefined;
  /** Maximum number of retries of a call; default 3. */
  retriesMax?: number;
  /** The client does not wait for a longer `Retry-After`; default 60. */
  retryAfterSecondsMax?: number;
  /** Time limit of one attempt of a call; default 30,000. */
  timeoutMs?: number;
  /** Precedes the client's own entry in `User-Agent`. */
  userAgent?: string;
}

/** Path parameters, query and body of a call; `account_id` defaults to the account of the client. */
type Parts<M extends Method, P extends PathOf<M>> = Omit<RequestParts<M, P>, 'path'> &
  WithoutAccount<RequestParts<M, P>> & {
    /** For a POST; generated if omitted and the path has `account_id`, so that a retry is not executed twice. */
    idempotencyKey?: string;
  };
type WithoutAccount<Request> = Request extends { path: infer PathParameters }
  ? 'account_id' extends keyof PathParameters
    ? keyof PathParameters extends 'account_id'
      ? { path?: Partial<PathParameters> }
      : { path: Omit<PathParameters, 'account_id'> & { account_id?: PathParameters['account_id'] } }
    : { path: PathParameters }
  : { path?: never };
/** Makes the argument optional if no part of it is required. */
type PartsArgument<Value> = object extends Value ? [parts?: Value] : [parts: Value];

/** A page of a list: `data` and `extra` of the envelope. */
export type Page<P extends ListPath> = Pick<
  SuccessEnvelope<'get', P> & { data: unknown; extra: unknown },
  'data' | 'extra'
>;

/**
 * Client of the management API. All paths are those of its OpenAPI document; calls return the `data` of the envelope.
 */
export interface Client extends ArtifactCalls {
  get<P extends PathOf<'get'>>(path: P, ...rest: PartsArgument<Parts<'get', P>>): Promise<Data<'get', P>>;
  post<P extends PathOf<'post'>>(path: P, ...rest: PartsArgument<Parts<'post', P>>): Promise<Data<'post', P>>;
  put<P extends PathOf<'put'>>(path: P, ...rest: PartsArgument<Parts<'put', P>>): Promise<Data<'put', P>>;
  delete<P extends PathOf<'delete'>>(
    path: P,
    ...rest: PartsArgument<Parts<'delete', P>>
  ): Promise<Data<'delete', P>>;
  /** Returns one page, with its `extra`. */
  page<P extends ListPath>(path: P, ...rest: PartsArgument<Parts<'get', P>>): Promise<Page<P>>;
  /** Yields every row; each page is requested only when the iteration reaches it. */
  list<P extends ListPath>(path: P, ...rest: PartsArgument<Parts<'get', P>>): AsyncGenerator<Row<P>, void>;
  /**
   * Yields changes of the account's webhooks until the signal is aborted.
   * @param options.webhookId a webhook that is also reported when its newest 25 deliveries change without an attempt
   */
  changes(options?: {
    accountId?: number;
    webhookId?: string;
    signal?: AbortSignal;
  }): AsyncGenerator<Change, void>;
}

/** Version of this package; a test compares it with the root package.json. */
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
    pagination: {
      count: number;
      total_count?: number;
      next_before?: string | null;
      /** Set in pages of the feed. */
      next_after?: string;
      has_more?: boolean;
    };
    filters: { offset?: number };
  };
}

/**
 * Creates a client. Throws a TypeError for an invalid URL. Calls throw a {@link RunhookError} unless the response is a
 * 2xx of Runhook, and an AbortError if their signal is aborted.
 */
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
  const urlOf = (path: string, { path: pathParameters = {}, query = {} }: UntypedParts) =>
    new URL(
      requestPath(path, { account_id: options.accountId, ...withoutUndefined(pathParameters) }, query),
      base,
    );

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
    const isRetryable = method === 'get' || method === 'put' || key !== undefined;
    return await withRetries(options, { isRetryable, signal }, () =>
      fetchEnvelope(url, request, options.timeoutMs, signal),
    );
  }

  async function putArtifact(file: Parameters<Client['putArtifact']>[0]): Promise<never> {
    const url = new URL(artifactPath(file, file.accountId ?? options.accountId), base);
    const headers = { ...headersOf({}), 'content-type': 'application/octet-stream' };
    // A Blob or buffer, whose length becomes Content-Length.
    const request = { method: 'PUT', headers, body: file.content as Blob };
    const { signal } = file;
    const attempt = () => fetchEnvelope(url, request, UPLOAD_TIMEOUT_MS, signal);
    return (await withRetries(options, { isRetryable: true, signal }, attempt)).data as never;
  }

  async function getArtifact(file: Parameters<Client['getArtifact']>[0]): Promise<Response> {
    const url = new URL(artifactPath(file, file.accountId ?? options.accountId), base);
    const { signal } = file;
    const headers = { ...headersOf({}), accept: '*/*' };
    return await withRetries(options, { isRetryable: true, signal }, () =>
      fetchResponse(url, { headers, redirect: 'manual', ...(signal && { signal }) }),
    );
  }

  async function data(method: Method, path: string, [parts]: unknown[]): Promise<never> {
    return (await call(method, path, parts as UntypedParts)).data as never;
  }

  async function* list(path: string, parts: UntypedParts = {}): AsyncGenerator<never, void> {
    let cursor: Record<string, unknown> = {};
    while (true) {
      const { data: rows, extra } = await call('get', path, {
        ...parts,
        query: { ...parts.query, ...cursor },
      });
      yield* rows as never[];
      if (extra === undefined) return;
      const { count, total_count: total = 0, next_before: before, next_after: after } = extra.pagination;
      if (after !== undefined) {
        if (extra.pagination.has_more !== true) return;
        cursor = { after };
        continue;
      }
      const offset = (extra.filters.offset ?? 0) + count;
      if (before === undefined ? count === 0 || offset >= total : before === null) return;
      cursor = before === undefined ? { offset } : { before };
    }
  }

  return {
    get: (path, ...rest) => data('get', path, rest),
    post: (path, ...rest) => data('post', path, rest),
    put: (path, ...rest) => data('put', path, rest),
    delete: (path, ...rest) => data('delete', path, rest),
    page: async (path, ...[parts]) => (await call('get', path, parts as UntypedParts)) as never,
    list: (path, ...[parts]) => list(path, parts as UntypedParts),
    putArtifact,
    getArtifact,
    changes({ accountId, webhookId, signal } = {}) {
      const parts = { path: { account_id: accountId }, query: { subscription_id: webhookId } };
      const headers = { ...headersOf({}), accept: 'text/event-stream' };
      return listen(
        (streamSignal) => fetch(urlOf(CHANGES, parts), { headers, signal: streamSignal }),
        signal,
      );
    },
  };
}

function withoutUndefined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Returns a successful response with an unread body. */
async function fetchResponse(url: URL, request: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, request);
    if (!response.ok) throw await parseFailure(response);
    return response;
  } catch (error) {
    if (error instanceof RunhookError || request.signal?.aborted) throw error;
    throw createConnectionError(error);
  }
}

async function fetchEnvelope(
  url: URL,
  request: RequestInit,
  timeoutMs = TIMEOUT_MS,
  signal: AbortSignal | undefined,
): Promise<Envelope> {
  const timeoutSignal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      ...request,
      // Does not follow redirects, because the token must not be sent to another server.
      redirect: 'manual',
      signal: signal === undefined ? timeoutSignal : AbortSignal.any([timeoutSignal, signal]),
    });
    if (!response.ok) throw await parseFailure(response);
    const envelope = (await response.json().catch(() => null)) as Envelope | null;
    if (typeof envelope === 'object' && envelope !== null && 'data' in envelope) return envelope;
    throw new RunhookError(response.status, 'The response is not from Runhook: check the URL.');
  } catch (error) {
    if (error instanceof RunhookError || signal?.aborted) throw error;
    throw createConnectionError(error);
  }
}

/**
 * Retries a call after a 429, and after a 409 with Retry-After. Retries it after a 503 or without a response only if it
 * is safe to repeat.
 */
async function withRetries<T>(
  { retriesMax = RETRIES_MAX, retryAfterSecondsMax = RETRY_AFTER_SECONDS_MAX }: ClientOptions,
  { isRetryable, signal }: { isRetryable: boolean; signal: AbortSignal | undefined },
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
      if (status !== 429 && !isKeyInUse && !(isRetryable && (status === 0 || status === 503))) throw error;
      if ((retryAfterSeconds ?? 0) > retryAfterSecondsMax) throw error;
      const pauseMs = retryAfterSeconds === null ? RETRY_MS * 2 ** tries : 1_000 * retryAfterSeconds;
      await wait(pauseMs, undefined, { ...(signal && { signal }) });
    }
  }
}
