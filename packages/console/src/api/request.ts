import { ownUrl } from '../base-path.ts';
import { ApiError } from './api-error.ts';

/** The envelope of every answer (spec, section 2.2). */
export interface Envelope<Data, Extra = unknown> {
  data: Data;
  status: { code: number; is_success?: boolean };
  extra: Extra;
}

interface Refusal {
  status?: { code?: number; user_message?: string; errors?: { field: string; message: string }[] };
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface RequestParts {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Values that are null, undefined or empty are left out. */
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/**
 * One call of the API, as whoever is signed in. Throws an {@link ApiError} for whatever is not a 2xx.
 * @param path below the console's root, without a slash at its start: `api/v3/session`
 */
export async function request<Data, Extra = unknown>(
  path: string,
  { method = 'GET', query = {}, body, headers = {}, signal }: RequestParts = {},
): Promise<Envelope<Data, Extra>> {
  const response = await answerOf(ownUrl(path) + searchOf(query), {
    method,
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
  if (response.ok && answer !== null) return answer as Envelope<Data, Extra>;
  throw refusalOf(response, answer as Refusal | null);
}

async function answerOf(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server did not answer. Check your connection and try again.');
  }
}

function refusalOf(response: Response, answer: Refusal | null): ApiError {
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  const { status } = answer ?? {};
  return new ApiError(response.status, status?.user_message ?? `The server answered ${response.status}.`, {
    fieldProblems: Object.fromEntries((status?.errors ?? []).map(({ field, message }) => [field, message])),
    retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
  });
}

function searchOf(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') parameters.set(name, String(value));
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}
