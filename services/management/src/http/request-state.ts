import type { Response } from 'express';

/** What one request's log line will tell, gathered on the way. */
export interface RequestState {
  requestId: string;
  /** The endpoint's path pattern; null while none matched. */
  route: string | null;
  /** Known once the caller proved to belong to it. */
  accountId: number | null;
}

export function requestState(response: Response): RequestState {
  return response.locals.request as RequestState;
}

export function beginRequestState(response: Response, requestId: string): RequestState {
  const state: RequestState = { requestId, route: null, accountId: null };
  response.locals.request = state;
  return state;
}
