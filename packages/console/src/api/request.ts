import type { Answer, Method, PathOf, RequestParts } from '@runhook/client';
import { ownUrl } from '../served-page.ts';
import { ApiError } from './api-error.ts';

export type { Answer, Query } from '@runhook/client';

/**
 * Calls the API with the session of the user. Throws an {@link ApiError} for a response that is not a 2xx.
 * @param path path as in the OpenAPI document; `parts.path` fills in its parameters
 */
export async function request<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  parts: RequestParts<M, P>,
): Promise<Answer<M, P>> {
  const { path: inPath = {}, query = {}, body, headers = {}, signal } = parts as UntypedParts;
  const url = path.slice(1).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(inPath[name])));
  const response = await answerOf(ownUrl(url) + searchOf(query), {
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
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer as Answer<M, P>;
  throw refusalOf(response, answer as Refusal | null);
}

interface UntypedParts {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function answerOf(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server did not respond. Check your connection and try again.');
  }
}

interface Refusal {
  status?: { code?: number; user_message?: string; errors?: { field: string; message: string }[] };
}

function refusalOf(response: Response, answer: Refusal | null): ApiError {
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  const { status } = answer ?? {};
  return new ApiError(response.status, status?.user_message ?? `The server returned ${response.status}.`, {
    fieldProblems: Object.fromEntries((status?.errors ?? []).map(({ field, message }) => [field, message])),
    retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
  });
}

function searchOf(query: Record<string, unknown>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
