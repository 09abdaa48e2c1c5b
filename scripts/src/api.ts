import { StartFailed } from './settings.ts';

const TIMEOUT_MS = 10_000;

/**
 * Calls the REST API as a client does (docs/contract.md#subscriptions). Paths are below `/api/v3/accounts/{id}/webhooks`; those
 * that begin with `/api/v2/` continue below `/api/v2/accounts/{id}/`.
 */
export interface Api {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: unknown): Promise<T>;
  put<T>(path: string, body: unknown): Promise<T>;
}

/** Reports an error response, or a missing response, for which `status` is 0. */
export class ApiFailed extends StartFailed {
  readonly status: number;

  constructor(request: string, status: number, message: string) {
    super(`${request}: ${status === 0 ? '' : `${status}, `}${message}`);
    this.status = status;
  }
}

/** @param baseUrl is called for each request, because a restarted service may have another port */
export function createApi(options: { baseUrl: () => string; accountId: number; token: string }): Api {
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const request = `${method} ${urlOf('', options.accountId, path)}`;
    const response = await fetch(urlOf(options.baseUrl(), options.accountId, path), {
      method,
      headers: {
        authorization: `Token ${options.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: Error) => {
      throw new ApiFailed(request, 0, (error.cause as Error | undefined)?.message ?? error.message);
    });
    const envelope = (await response.json().catch(() => null)) as Envelope<T> | null;
    if (response.ok && envelope !== null) return envelope.data;
    throw new ApiFailed(
      request,
      response.status,
      envelope?.status.user_message ?? 'not a response of this API',
    );
  }
  return {
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    put: (path, body) => call('PUT', path, body),
  };
}

function urlOf(baseUrl: string, accountId: number, path: string): string {
  if (!path.startsWith(V2)) return webhooksUrl(baseUrl, accountId) + path;
  return `${baseUrl}${V2}accounts/${accountId}/${path.slice(V2.length)}`;
}

const V2 = '/api/v2/';

export function webhooksUrl(baseUrl: string, accountId: number): string {
  return `${baseUrl}/api/v3/accounts/${accountId}/webhooks`;
}

interface Envelope<T> {
  data: T;
  status: { code: number; user_message?: string };
}
