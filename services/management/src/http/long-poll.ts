import type { Response } from 'express';
import type { EndpointResponse } from './envelope.ts';
import { requestState } from './request-telemetry.ts';

/** Maximum time that a caller may let a request wait, in seconds: below the idle timeouts of proxies. */
export const WAIT_SECONDS_MAX = 30;

/**
 * Thrown by an endpoint whose caller waits for something that is not there yet, after its transaction. The request then
 * waits without a slot, a connection or a deadline and is admitted and handled again, so that a caller that has lost its
 * permission meanwhile gets nothing.
 */
export class LongPoll extends Error {
  readonly code = 'long_poll';
  /** The response if nothing comes. */
  readonly response: EndpointResponse;
  /** Time from the arrival of the request that it waits at most. */
  readonly waitMs: number;
  /** Parameters of the query that have another value when the request is handled again: the progress of the first time. */
  readonly query: Readonly<Record<string, string>>;
  /** Resolves with true when handling the request again may have another result. */
  readonly wait: (remainingMs: number, signal: AbortSignal) => Promise<boolean>;

  constructor(poll: Pick<LongPoll, 'response' | 'waitMs' | 'wait'> & Partial<Pick<LongPoll, 'query'>>) {
    super('waits');
    this.response = poll.response;
    this.waitMs = poll.waitMs;
    this.wait = poll.wait;
    this.query = poll.query ?? {};
  }
}

/** Handles a request, and again each time that its wait ends early. @param retry admits the request again, uncounted */
export async function withLongPolls(
  response: Response,
  handle: () => Promise<EndpointResponse>,
  retry: (poll: LongPoll) => Promise<EndpointResponse>,
): Promise<EndpointResponse> {
  const startedAtMs = performance.now();
  const closed = new AbortController();
  let attempt = handle;
  for (;;) {
    try {
      return await attempt();
    } catch (poll) {
      if (!(poll instanceof LongPoll)) throw poll;
      if (attempt === handle) {
        response.once('close', () => closed.abort());
        requestState(response).isStream = true;
      }
      const remainingMs = startedAtMs + poll.waitMs - performance.now();
      const isOver = remainingMs <= 0 || response.destroyed;
      if (isOver || !(await poll.wait(remainingMs, closed.signal))) return poll.response;
      // A run must not be claimed for a caller that has disconnected.
      if (response.destroyed) return poll.response;
      attempt = () => retry(poll);
    }
  }
}
