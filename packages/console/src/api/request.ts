import type { Method, PathOf, RequestParts, SuccessEnvelope } from '@runhook/client';
import { consoleUrl } from '../served-page.ts';
import { ApiError } from './api-error.ts';

export type { Query, SuccessEnvelope } from '@runhook/client';

/**
 * Calls the API with the session of the user. Throws an {@link ApiError} unless the response is a 2xx with JSON.
 * @param path path as in the OpenAPI document; `parts.path` fills in its parameters
 */
export async function request<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  parts: RequestParts<M, P>,
): Promise<SuccessEnvelope<M, P>> {
  const { path: pathParameters = {}, query = {}, body, headers = {}, signal } = parts as UntypedParts;
  const url = path
    .slice(1)
    .replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(pathParameters[name])));
  const response = await fetchResponse(consoleUrl(url) + toQueryString(query), {
    method: method.toUpperCase(),
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const result: unknown = await response.json().catch(() => null);
  if (response.ok && result !== null) return result as SuccessEnvelope<M, P>;
  throw toApiError(response, result as ErrorBody | null);
}

/** Reads a text with the session of the user. Throws an {@link ApiError} unless the response is a 2xx. @param path relative */
export async function requestText(path: string, signal: AbortSignal): Promise<string> {
  const response = await fetchResponse(consoleUrl(path), { credentials: 'same-origin', signal });
  if (response.ok) return await response.text();
  throw toApiError(response, (await response.json().catch(() => null)) as ErrorBody | null);
}

interface UntypedParts {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function fetchResponse(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server did not respond. Check your connection and try again.');
  }
}

interface ErrorBody {
  status?: { code?: number; user_message?: string; errors?: { field: string; message: string }[] };
}

function toApiError(response: Response, body: ErrorBody | null): ApiError {
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  const { status } = body ?? {};
  return new ApiError(response.status, status?.user_message ?? `The server returned ${response.status}.`, {
    fieldProblems: Object.fromEntries((status?.errors ?? []).map(({ field, message }) => [field, message])),
    retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
  });
}

function toQueryString(query: Record<string, unknown>): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  // An array is a repeated parameter.
  const pairs = entries.flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  const queryString = new URLSearchParams(pairs).toString();
  return queryString === '' ? '' : `?${queryString}`;
}
