import { isIP } from 'node:net';
import type { RecordWrites } from '@runhook/database';
import { type Request, type Response, Router } from 'express';
import type { AccountPlaces } from './account-places.ts';
import { type Authentication, authenticate, isSameOrigin } from './authentication.ts';
import { readBody } from './body.ts';
import { answerInTime, CommitGate } from './commit-gate.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  authorize,
  DEADLINE_MS,
  type Endpoint,
  type OpenRequest,
} from './endpoint.ts';
import { type Answer, sendAnswer } from './envelope.ts';
import {
  AccessDeniedError,
  HeldError,
  InvalidRequestError,
  MethodNotAllowedError,
  OutdatedCallerError,
  TooManyRequestsError,
  UnavailableError,
} from './errors.ts';
import {
  type Idempotency,
  KEEPS_NOTHING,
  KEEPS_NOTHING_ALONE,
  type Keeper,
  keptBefore,
} from './idempotency.ts';
import type { LaggingReads } from './lagging-reads.ts';
import { type Limiter, requestBudget } from './limits.ts';
import { requestState } from './request-telemetry.ts';

/** Components that every request passes before its endpoint. */
export interface RouterDependencies extends Authentication {
  /** Rate limit of an account's requests. */
  requestLimit: Pick<Limiter, 'take'>;
  idempotency: Idempotency;
  places: Pick<AccountPlaces, 'run' | 'beside'>;
  reads: Pick<LaggingReads, 'noteWrite'>;
  /** Tracks whether calls that write succeed. */
  writes: Pick<RecordWrites, 'track'>;
  /** Time a request may take before the caller gets a 503; {@link DEADLINE_MS} when omitted. */
  deadlineMs?: number | undefined;
  /** Time a body may take to arrive; 15 s when omitted. */
  bodyMs?: number | undefined;
}

/** Routes every endpoint, with and without a trailing slash; other methods of their paths are a 405. */
export function mountEndpoints(endpoints: readonly Endpoint[], dependencies: RouterDependencies): Router {
  const { deadlineMs = DEADLINE_MS } = dependencies;
  const router = Router({ caseSensitive: true });
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const ofPath = endpoints.filter((endpoint) => endpoint.path === path);
    const byMethod = new Map<string, Endpoint>(ofPath.map((endpoint) => [endpoint.method, endpoint]));
    const allowed = [...byMethod.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    router.all(path, async (request, response) => {
      requestState(response).route = path;
      const endpoint = byMethod.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (!endpoint) throw new MethodNotAllowedError(request.method, allowed);
      const admission = () => admitAsKnown(endpoint, dependencies, request, response);
      const handle = await answerInTime(deadlineMs, new CommitGate(), admission);
      const body = await readBody(request, response, {
        bytesMax: endpoint.bodyBytesMax,
        valuesMax: endpoint.bodyValuesMax,
        bodyMs: dependencies.bodyMs,
      });
      const answerMs = deadlineMs + (endpoint.extraMs ?? 0);
      const gate = new CommitGate();
      const beforeCommit = () => gate.pass();
      const open = { body, beforeCommit, ...partsOf(request) };
      const answer = await answerInTime(answerMs, gate, () => handle(open, gate));
      sendAnswer(response, answer);
    });
  }
  return router;
}

/** The remaining work of an admitted request. */
type Admitted = (request: OpenRequest, gate: CommitGate) => Promise<Answer>;

/** Bounds the retries of a request while its caller's permissions change repeatedly. */
const ADMISSIONS_MAX = 3;

/**
 * Admits a request as {@link admit} does, but with a cached caller if the commit checks the caller. If the cached
 * caller lacks the permission, or the commit finds that the caller is outdated, the caller is read from the record and
 * the request is decided again. A repeat under an `Idempotency-Key` commits nothing, so its caller is always read.
 */
async function admitAsKnown(
  endpoint: Endpoint,
  dependencies: RouterDependencies,
  request: Request,
  response: Response,
): Promise<Admitted> {
  const readCaller = () => admit(endpoint, dependencies, request, response, { isCached: false });
  const isCached = 'isCommittedTogether' in endpoint && request.get(HEADER) === undefined;
  const first = await admit(endpoint, dependencies, request, response, { isCached }).catch((error) => {
    if (isCached && error instanceof AccessDeniedError) return readCaller();
    throw error;
  });
  return async (open, gate) => {
    let admitted = first;
    for (let admissions = 1; ; admissions += 1) {
      try {
        return await admitted(open, gate);
      } catch (error) {
        if (!(error instanceof OutdatedCallerError)) throw error;
        if (admissions === ADMISSIONS_MAX) throw new UnavailableError();
        gate.reopen();
        admitted = await readCaller();
      }
    }
  };
}

/** Admits the request and returns its remaining work, or throws the rejection. The body has not been read yet. */
async function admit(
  endpoint: Endpoint,
  dependencies: RouterDependencies,
  request: Request,
  response: Response,
  { isCached }: { isCached: boolean },
): Promise<Admitted> {
  if (endpoint.access === 'anyone') return (open) => endpoint.handle(open);
  const { authorization, cookie } = request.headers;
  const isTogether = 'isCommittedTogether' in endpoint;
  const caller = await authenticate({ authorization, cookie }, dependencies, isCached);
  if (caller.credential.kind === 'session' && changesSomething(endpoint)) requireSameOrigin(request);
  if (endpoint.access === 'caller') {
    await count(requestBudget(caller.principal, null), dependencies);
    return (open) => endpoint.handle({ ...open, ...caller });
  }
  const accountIdText = request.params.account_id as string;
  if (endpoint.access.metered) await count(requestBudget(caller.principal, accountIdText), dependencies);
  const account = authorize(caller.principal, accountIdText, endpoint.access);
  requestState(response).accountId = account.id;
  const { params } = request;
  const { places, reads } = dependencies;
  return async (open, gate) => {
    const key = endpoint.method === 'POST' ? keyOf(open.header(HEADER)) : null;
    const request = { ...open, ...caller, account };
    const work = async (keeper?: Keeper) => {
      gate.requireOpen();
      try {
        return await handleOnce(endpoint, dependencies, { request, params, key, gate }, keeper);
      } finally {
        reads.noteWrite(endpoint, request);
      }
    };
    if (endpoint.extraMs !== undefined) return await work(KEEPS_NOTHING);
    if (isTogether && key === null) {
      try {
        return await places.beside(account.id, () => work(KEEPS_NOTHING));
      } catch (error) {
        if (!(error instanceof HeldError)) throw error;
        gate.reopen();
      }
    }
    return await places.run(account.id, () => work());
  };
}

async function count(budget: string, { requestLimit }: RouterDependencies): Promise<void> {
  const taking = await requestLimit.take(budget);
  if (taking.kind === 'refused') throw new TooManyRequestsError(taking.retryAfterSeconds);
}

function changesSomething({ method, hasEffect }: Endpoint): boolean {
  return method !== 'GET' || hasEffect === true;
}

/** Browsers add the cookie to requests of other pages, too; a credential in a header is always added deliberately. */
function requireSameOrigin(request: Request): void {
  const proof = {
    secFetchSite: request.get('sec-fetch-site'),
    origin: request.get('origin'),
    host: request.host,
  };
  if (!isSameOrigin(proof)) throw new AccessDeniedError('The request does not come from the console itself.');
}

function partsOf(request: Request): Omit<OpenRequest, 'body' | 'beforeCommit'> {
  const reported = request.ip ?? '';
  return {
    param: (name) => request.params[name] as string,
    query: request.query as OpenRequest['query'],
    header: (name) => request.get(name),
    // A proxy may forward any text.
    clientAddress: isIP(reported) === 0 ? (request.socket.remoteAddress ?? '') : reported,
    secure: request.secure,
  };
}

const HEADER = 'Idempotency-Key';
const KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * Calls the endpoint; a POST with an `Idempotency-Key` (docs/contract.md#idempotency) once for each key. Rotating an
 * API key is not an endpoint of an account and has no such keys: a repeat carries the old API key, which is rejected.
 */
async function handleOnce(
  endpoint: AccountEndpoint,
  { idempotency, writes }: Pick<RouterDependencies, 'idempotency' | 'writes'>,
  call: { request: AccountRequest; params: object; key: string | null; gate: CommitGate },
  keeper: Keeper = KEEPS_NOTHING_ALONE,
): Promise<Answer> {
  const { request, params, key, gate } = call;
  if (endpoint.method === 'GET') return await endpoint.handle(request);
  const handleWith = (keeper: Keeper) =>
    endpoint.handle({ ...request, keep: keptBefore(request.beforeCommit, keeper) });
  const { principal, body } = request;
  const ofKey = { principal, request: [endpoint.method, endpoint.path, params], body, gate };
  const run = () => (key === null ? handleWith(keeper) : idempotency.once({ ...ofKey, key }, handleWith));
  // A call that waits for an external server writes nothing.
  if (endpoint.extraMs !== undefined) return await run();
  return await writes.track('isCommittedTogether' in endpoint ? 'reports' : 'configuration', run);
}

function keyOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (KEY.test(header)) return header;
  const message = `${HEADER} must be 1 to 255 printable ASCII characters`;
  throw new InvalidRequestError([{ field: HEADER, message }]);
}
