import { isIP } from 'node:net';
import { type Request, type Response, Router } from 'express';
import { requestBudget } from '../domain/request-budget.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Limiter } from '../limits/limiter.ts';
import { type Authentication, authenticate } from './authenticate.ts';
import { authorize } from './authorize.ts';
import { DEADLINE_MS, type Endpoint, type OpenRequest } from './endpoint.ts';
import { type Answer, sendAnswer } from './envelope.ts';
import {
  AccessDeniedError,
  MethodNotAllowedError,
  TooManyRequestsError,
  UnavailableError,
} from './errors.ts';
import { handleOnce } from './handle-once.ts';
import { readBody } from './read-body.ts';
import { requestState } from './request-state.ts';
import { isSameOrigin } from './same-origin.ts';

/** What every request passes on its way to an endpoint. */
export interface Entrance extends Authentication {
  /** The requests that one account may send. */
  requestLimit: Pick<Limiter, 'take'>;
  idempotency: Idempotency;
}

/** Routes every endpoint, with and without a slash at the end; other methods of their paths are a 405. */
export function mountEndpoints(endpoints: readonly Endpoint[], entrance: Entrance): Router {
  const router = Router({ caseSensitive: true });
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const ofPath = endpoints.filter((endpoint) => endpoint.path === path);
    const byMethod = new Map<string, Endpoint>(ofPath.map((endpoint) => [endpoint.method, endpoint]));
    const allowed = [...byMethod.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    router.all(path, async (request, response) => {
      requestState(response).route = path;
      const endpoint = byMethod.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (!endpoint) throw new MethodNotAllowedError(request.method, allowed);
      const handle = await within(DEADLINE_MS, admit(endpoint, entrance, request, response));
      const body = await readBody(request, response);
      const answer = await within(endpoint.deadlineMs ?? DEADLINE_MS, handle({ ...partsOf(request), body }));
      sendAnswer(response, answer);
    });
  }
  return router;
}

/** Lets the request in, and answers what is left to do with it. Throws the refusal; nothing of the body is read yet. */
async function admit(
  endpoint: Endpoint,
  entrance: Entrance,
  request: Request,
  response: Response,
): Promise<(request: OpenRequest) => Promise<Answer>> {
  if (endpoint.access === 'anyone') return (open) => endpoint.handle(open);
  const { authorization, cookie } = request.headers;
  const caller = await authenticate({ authorization, cookie }, entrance);
  if (caller.credential.kind === 'session' && changesSomething(endpoint)) requireSameOrigin(request);
  if (endpoint.access === 'caller') {
    await count(requestBudget(caller.principal, null), entrance);
    return (open) => endpoint.handle({ ...open, ...caller });
  }
  const accountIdText = request.params.account_id as string;
  if (endpoint.access.metered) await count(requestBudget(caller.principal, accountIdText), entrance);
  const account = authorize(caller.principal, accountIdText, endpoint.access);
  requestState(response).accountId = account.id;
  const { params } = request;
  return (open) =>
    handleOnce(endpoint, entrance.idempotency, { request: { ...open, ...caller, account }, params });
}

async function count(budget: string, { requestLimit }: Entrance): Promise<void> {
  const taking = await requestLimit.take(budget);
  if (taking.kind === 'refused') throw new TooManyRequestsError(taking.retryAfterSeconds);
}

function changesSomething({ method, hasEffect }: Endpoint): boolean {
  return method !== 'GET' || hasEffect === true;
}

/** A browser adds the cookie to what other pages send, too; a header credential is only ever added on purpose. */
function requireSameOrigin(request: Request): void {
  const proof = {
    secFetchSite: request.get('sec-fetch-site'),
    origin: request.get('origin'),
    host: request.host,
  };
  if (!isSameOrigin(proof)) throw new AccessDeniedError('The request does not come from the console itself.');
}

function partsOf(request: Request): Omit<OpenRequest, 'body'> {
  const told = request.ip ?? '';
  return {
    param: (name) => request.params[name] as string,
    query: request.query as OpenRequest['query'],
    header: (name) => request.get(name),
    // What a proxy passes on may be anything.
    clientAddress: isIP(told) === 0 ? (request.socket.remoteAddress ?? '') : told,
    secure: request.secure,
  };
}

/** A database that neither answers nor breaks must not keep the caller. The work goes on; only the caller is let go. */
async function within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UnavailableError()), deadlineMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
