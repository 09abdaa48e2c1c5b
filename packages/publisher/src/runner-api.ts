import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

/** The address and credential of the service's REST API. */
export interface RunnerApiOptions {
  /** Address of the service: `https://runhook.example.com`. */
  url: string;
  /** A service token of the account with the permission set `job_runner`, or an API key. */
  token: string;
  accountId: number;
}

/** A response of the service that is not a success, or none that can be read (`status` 0). */
export class RunnerApiError extends Error {
  readonly code = 'runner_api';
  /** HTTP status; 0 if the service could not be reached, or its response was cut off. */
  readonly status: number;
  /** Whether the run has ended, or another runner has claimed it: the execution must end. */
  readonly isLeaseLost: boolean;

  constructor(status: number, message: string, options: ErrorOptions & { isLeaseLost?: boolean } = {}) {
    super(message, options);
    this.status = status;
    this.isLeaseLost = options.isLeaseLost === true;
  }

  /** Whether a repeat may succeed. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** A call of {@link RunnerApi}. */
export interface RunnerCall {
  method?: 'POST' | 'PUT';
  body?: unknown;
  leaseToken?: string;
  /** Ends the call; it then throws an AbortError. */
  signal?: AbortSignal;
  /** Whether the call gets an `Idempotency-Key`, so that a repeat returns the first result. */
  hasKey?: boolean;
  /** Maximum number of attempts; 10 when omitted. */
  triesMax?: number;
}

const TRIES_MAX = 10;
const RETRY_MS = 200;
const RETRY_MAX_MS = 5_000;
/** Time of one attempt: longer than the service lets a call wait. */
const TIMEOUT_MS = 45_000;
/** The service ends an upload that is slower than 64 KiB/s: the largest takes 17 minutes. */
const UPLOAD_TIMEOUT_MS = 1_200_000;

/** The part of the REST API that runners use. Calls are repeated while the service is unavailable. */
export class RunnerApi {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor({ url, token, accountId }: RunnerApiOptions) {
    this.#base = `${url.replace(/\/+$/, '')}/api/v2/accounts/${accountId}`;
    this.#headers = { authorization: `Token ${token}`, accept: 'application/json' };
  }

  /** Returns `data` of the response. Throws {@link RunnerApiError}. @param path after the account: `/runs/claim/` */
  async call<T>(path: string, call: RunnerCall = {}): Promise<T> {
    const { triesMax = TRIES_MAX, signal } = call;
    const key = call.hasKey ? randomUUID() : undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        return (await this.#attempt(path, call, key)) as T;
      } catch (error) {
        if (!(error instanceof RunnerApiError && error.isTemporary) || tries >= triesMax) throw error;
        await wait(Math.min(RETRY_MS * 2 ** (tries - 1), RETRY_MAX_MS), undefined, { signal });
      }
    }
  }

  async #attempt(path: string, call: RunnerCall, key: string | undefined): Promise<unknown> {
    const { method = 'POST', body = {}, leaseToken, signal } = call;
    const isRaw = body instanceof Uint8Array;
    const timeout = AbortSignal.timeout(isRaw ? UPLOAD_TIMEOUT_MS : TIMEOUT_MS);
    const response = await fetch(this.#base + path, {
      method,
      headers: {
        ...this.#headers,
        'content-type': isRaw ? 'application/octet-stream' : 'application/json',
        ...(leaseToken !== undefined && { 'lease-token': leaseToken }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: isRaw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      redirect: 'error',
    }).catch((cause: Error) => {
      if (signal?.aborted) throw cause;
      throw new RunnerApiError(0, `The service cannot be reached: ${cause.message}`, { cause });
    });
    const envelope = (await response.json().catch(() => null)) as {
      data?: unknown;
      status?: { user_message?: string };
    } | null;
    if (response.ok && envelope !== null) return envelope.data;
    // The body was cut off, so the result is unknown.
    if (response.ok) throw new RunnerApiError(0, 'The response of the service cannot be read.');
    const message = envelope?.status?.user_message ?? `The service responded with ${response.status}.`;
    throw new RunnerApiError(response.status, message, { isLeaseLost: response.headers.has('lease-lost') });
  }
}
