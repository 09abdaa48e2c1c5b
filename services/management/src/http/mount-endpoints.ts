import { type Request, type Response, Router } from 'express';
import { authenticate, type FindPrincipal } from './authenticate.ts';
import { authorize } from './authorize.ts';
import { DEADLINE_MS, type Endpoint } from './endpoint.ts';
import { sendAnswer } from './envelope.ts';
import { MethodNotAllowedError, UnavailableError } from './errors.ts';
import { readBody } from './read-body.ts';
import { requestState } from './request-state.ts';

/** Routes every endpoint, with and without a slash at the end; other methods of their paths are a 405. */
export function mountEndpoints(endpoints: readonly Endpoint[], findPrincipal: FindPrincipal): Router {
  const router = Router({ caseSensitive: true });
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const ofPath = endpoints.filter((endpoint) => endpoint.path === path);
    const byMethod = new Map<string, Endpoint>(ofPath.map((endpoint) => [endpoint.method, endpoint]));
    const allowed = [...byMethod.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    router.all(path, async (request, response) => {
      requestState(response).route = path;
      const endpoint = byMethod.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (!endpoint) throw new MethodNotAllowedError(request.method, allowed);
      await serve(endpoint, findPrincipal, request, response);
    });
  }
  return router;
}

async function serve(
  endpoint: Endpoint,
  findPrincipal: FindPrincipal,
  request: Request,
  response: Response,
): Promise<void> {
  const param = (name: string) => request.params[name] as string;
  const principal = await within(DEADLINE_MS, authenticate(request.get('authorization'), findPrincipal));
  const account = authorize(principal, param('account_id'), endpoint.access);
  requestState(response).accountId = account.id;
  const body = await readBody(request, response);
  const answer = await within(
    endpoint.deadlineMs ?? DEADLINE_MS,
    endpoint.handle({
      account,
      principal,
      param,
      query: request.query as Record<string, string | string[] | undefined>,
      body,
      header: (name) => request.get(name),
    }),
  );
  sendAnswer(response, answer);
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
