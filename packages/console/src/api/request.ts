import type { paths } from '../generated/api.ts';
import { ownUrl } from '../served-page.ts';
import { ApiError } from './api-error.ts';

type Method = 'get' | 'post' | 'put' | 'delete';
/** Those that have the method. */
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends object ? P : never;
}[keyof paths];

type Json<Content> = Content extends { content: { 'application/json': infer Value } } ? Value : undefined;
type Part<O, Name extends string> = O extends { parameters: { [N in Name]?: infer Value } }
  ? Value
  : undefined;
/** A part of a request that must be given, may be, or does not exist. */
type Given<Name extends string, Value> = [Value] extends [undefined]
  ? { [N in Name]?: never }
  : undefined extends Value
    ? { [N in Name]?: NonNullable<Value> }
    : { [N in Name]: Value };

/** Parameters of the address; those that are empty are left out. */
export type Query<M extends Method, P extends PathOf<M>> = {
  [N in keyof NonNullable<Part<paths[P][M], 'query'>>]: NonNullable<Part<paths[P][M], 'query'>>[N] | '';
};

type RequestParts<M extends Method, P extends PathOf<M>> = Given<'path', Part<paths[P][M], 'path'>> &
  Given<'body', paths[P][M] extends { requestBody?: infer Body } ? Json<Body> : undefined> & {
    query?: Query<M, P>;
    headers?: Record<string, string>;
    signal?: AbortSignal | undefined;
  };

/** The envelope of the answer to a call that succeeds (docs/contract.md#requests-and-answers). */
export type Answer<M extends Method, P extends PathOf<M>> = paths[P][M] extends { responses: infer All }
  ? Json<All[keyof All & (200 | 201 | 202)]>
  : never;

/**
 * One call of the API, as whoever is signed in. Throws an {@link ApiError} for whatever is not a 2xx.
 * @param path as the API's document has it; what stands in braces comes from `parts.path`
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
    throw new ApiError(0, 'The server did not answer. Check your connection and try again.');
  }
}

interface Refusal {
  status?: { code?: number; user_message?: string; errors?: { field: string; message: string }[] };
}

function refusalOf(response: Response, answer: Refusal | null): ApiError {
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  const { status } = answer ?? {};
  return new ApiError(response.status, status?.user_message ?? `The server answered ${response.status}.`, {
    fieldProblems: Object.fromEntries((status?.errors ?? []).map(({ field, message }) => [field, message])),
    retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
  });
}

function searchOf(query: Record<string, unknown>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
