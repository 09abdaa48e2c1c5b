import { isIP } from 'node:net';
import { integerIdFromText } from '@runhook/contract';
import type { RecordWrites } from '@runhook/database';
import { type Request, type Response, Router } from 'express';
import { findScope, type Principal } from '../identity/principals.ts';
import type { AccountBudgets } from './account-budgets.ts';
import { type Authentication, authenticate, isSameOrigin } from './authentication.ts';
import { readBody } from './body.ts';
import { CommitGuard, respondWithinDeadline } from './commit-guard.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  authorize,
  DEADLINE_MS,
  type Endpoint,
  type ParsedRequest,
} from './endpoint.ts';
import { type EndpointResponse, sendResponse } from './envelope.ts';
import {
  AccessDeniedError,
  InvalidRequestError,
  MethodNotAllowedError,
  RunLockedError,
  StaleCredentialError,
  TooManyRequestsError,
  UnavailableError,
  UnbatchedReportError,
} from './errors.ts';
import { type FileUpload, markUpload, openUpload } from './file-upload.ts';
import {
  type Idempotency,
  NO_RECORDING,
  NO_RECORDING_UNBATCHED,
  type ResponseRecorder,
  withCommitCheck,
} from './idempotency.ts';
import { LARGE_BYTES, memoryReservation, runWithMemory } from './large-bodies.ts';
import { type LimitResult, requestLimitKey } from './limits.ts';
import { withLongPolls } from './long-poll.ts';
import { requireUtf8Query } from './query-encoding.ts';
import type { ReplicaReads } from './replica-reads.ts';
import { recordCaller, requestState } from './request-telemetry.ts';
import { unservedMethodError } from './unserved-routes.ts';

/** Components that every request passes before its endpoint. */
export interface RouterDependencies extends Authentication {
  /** Rate limit of an account's requests. */
  requestLimit: { consume(key: string): Promise<LimitResult> };
  idempotency: Idempotency;
  /** Limit of an account's requests with an `Idempotency-Key`, because each stores its response for a day. */
  keyLimit: { consume(key: string): Promise<LimitResult> };
  budgets: AccountBudgets;
  reads: Pick<ReplicaReads, 'recordWrite'>;
  /** Tracks whether calls that write succeed. */
  writes: Pick<RecordWrites, 'track'>;
  /** Time for the admission of a request, and again for its work; {@link DEADLINE_MS} when omitted. */
  deadlineMs?: number | undefined;
  /** Time a body may take to arrive; 15 s when omitted. */
  bodyMs?: number | undefined;
}

/** Routes every endpoint, with and without a trailing slash; other methods of their paths are a 405. */
export function mountEndpoints(endpoints: readonly Endpoint[], dependencies: RouterDependencies): Router {
  const { deadlineMs = DEADLINE_MS } = dependencies;
  const router = Router({ caseSensitive: true });
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const pathEndpoints = endpoints.filter((endpoint) => endpoint.path === path);
    const byMethod = new Map<string, Endpoint>(pathEndpoints.map((endpoint) => [endpoint.method, endpoint]));
    const allowed = [...byMethod.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    router.all(path, async (request, response) => {
      requestState(response).route = path;
      const endpoint = byMethod.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (!endpoint) {
        const { method } = request;
        throw unservedMethodError(method, request.path) ?? new MethodNotAllowedError(method, allowed);
      }
      if (isUpload(endpoint)) markUpload(request);
      const admit = () =>
        respondWithinDeadline(deadlineMs, new CommitGuard(), () =>
          admitCached(endpoint, dependencies, request, response),
        );
      const handle = await admit();
      const memory = memoryReservation(
        dependencies.budgets.largeBodies,
        response,
        () => requestState(response).accountId,
      );
      if (isLarge(endpoint, request)) await memory.reserve();
      const { body, file } = await readOrOpenBody(endpoint, dependencies, request, response);
      const responseMs = deadlineMs + (endpoint.extraTimeMs ?? 0) + uploadMs(file);
      const respond = (handleAdmitted: AdmittedHandler) => {
        const guard = new CommitGuard();
        const beforeCommit = () => guard.commit();
        const parsedRequest = {
          body,
          file,
          beforeCommit,
          requireMemory: memory.require,
          ...requestParts(request),
        };
        const work = () => handleAdmitted(parsedRequest, guard);
        return respondWithinDeadline(responseMs, guard, () => runWithMemory(memory, work));
      };
      const retry = async () => respond(await admit());
      const endpointResponse = await withLongPolls(response, () => respond(handle), retry);
      // Responses to writes are short, and those to a creation or a rotation contain a secret.
      const isCompressible = endpoint.method === 'GET' && endpoint.hasSecret !== true;
      await sendResponse(response, endpointResponse, isCompressible);
    });
  }
  return router;
}

/** Reads the body of an admitted request. A file is only opened: its handler reads it. */
async function readOrOpenBody(
  endpoint: Endpoint,
  { bodyMs }: RouterDependencies,
  request: Request,
  response: Response,
): Promise<Pick<ParsedRequest, 'body' | 'file'>> {
  const { bodyType } = endpoint;
  if (bodyType === 'file') {
    const bytesMax = endpoint.bodyBytesMax ?? 0;
    return { body: undefined, file: openUpload(request, response, { bytesMax, graceMs: bodyMs }) };
  }
  const limits = { bytesMax: bodyBytesMaxOf(endpoint, request), valuesMax: endpoint.bodyValuesMax };
  return { body: await readBody(request, response, { ...limits, bodyMs, bodyType }) };
}

/** Time that a store may take to acknowledge a file, whose client has sent it. */
const STORE_MS = 40_000;

/** The time of a handler that reads a file, beyond that of others. */
function uploadMs(file: FileUpload | undefined): number {
  return file === undefined ? 0 : file.durationMaxMs + STORE_MS;
}

/** The remaining work of an admitted request. */
type AdmittedHandler = (request: ParsedRequest, guard: CommitGuard) => Promise<EndpointResponse>;

/** Maximum number of admissions of a request whose caller's permissions change repeatedly. */
const ADMISSIONS_MAX = 3;

/**
 * Admits a request as {@link admit} does, but with a cached caller if the commit checks the caller. If the cached
 * caller lacks the permission, or the commit finds that the caller is outdated, the caller is read from the record and
 * the request is decided again. A repeat under an `Idempotency-Key` commits nothing, so its caller is always read.
 */
async function admitCached(
  endpoint: Endpoint,
  dependencies: RouterDependencies,
  request: Request,
  response: Response,
): Promise<AdmittedHandler> {
  const readCaller = () => admit(endpoint, dependencies, request, response, { isCached: false });
  const isCached = 'isBatched' in endpoint && request.get(IDEMPOTENCY_KEY_HEADER) === undefined;
  const firstHandler = await admit(endpoint, dependencies, request, response, { isCached }).catch((error) => {
    if (isCached && error instanceof AccessDeniedError) return readCaller();
    throw error;
  });
  return async (parsedRequest, guard) => {
    let handler = firstHandler;
    for (let admissions = 1; ; admissions += 1) {
      try {
        return await handler(parsedRequest, guard);
      } catch (error) {
        if (!(error instanceof StaleCredentialError)) throw error;
        if (admissions === ADMISSIONS_MAX) throw new UnavailableError();
        guard.reopen();
        handler = await readCaller();
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
): Promise<AdmittedHandler> {
  if (endpoint.access === 'anyone') return (parsedRequest) => endpoint.handle(parsedRequest);
  const { authorization, cookie } = request.headers;
  const isBatched = 'isBatched' in endpoint;
  const caller = await authenticate({ authorization, cookie }, dependencies, isCached);
  recordCaller(response, caller.principal);
  if (caller.credential.kind === 'session' && hasSideEffect(endpoint)) requireSameOrigin(request);
  if (endpoint.access === 'caller') {
    await countCall(requestLimitKey(caller.principal, null), dependencies);
    return (parsedRequest) => endpoint.handle({ ...parsedRequest, ...caller });
  }
  const accountIdText = request.params.account_id as string;
  if (endpoint.extraTimeMs !== undefined) requireCapacity(caller.principal, accountIdText, dependencies);
  if (endpoint.access.metered)
    await countCall(requestLimitKey(caller.principal, accountIdText), dependencies);
  const account = authorize(caller.principal, accountIdText, endpoint.access);
  requestState(response).accountId = account.id;
  if (isUpload(endpoint)) dependencies.budgets.uploads.requireCapacity(account.id);
  const { params } = request;
  const { budgets, reads } = dependencies;
  const { access } = endpoint;
  const confirmAccess = async () => {
    const { principal } = await authenticate({ authorization, cookie }, dependencies);
    authorize(principal, accountIdText, access);
  };
  return async (parsedRequest, guard) => {
    const key = endpoint.method === 'POST' ? parseKey(parsedRequest.header(IDEMPOTENCY_KEY_HEADER)) : null;
    if (key !== null) await requireAccepted(dependencies.keyLimit.consume(`account:${account.id}`));
    const request = { ...parsedRequest, ...caller, account, confirmAccess };
    const work = async (recorder?: ResponseRecorder) => {
      guard.requireOpen();
      try {
        return await handleOnce(endpoint, dependencies, { request, params, key, guard }, recorder);
      } finally {
        reads.recordWrite(endpoint, request);
      }
    };
    if (endpoint.extraTimeMs !== undefined)
      return await budgets.endpointTests.run(account.id, () => work(NO_RECORDING));
    // An upload takes minutes, so it has no slot of the requests, whose work is a statement.
    if (isUpload(endpoint)) return await budgets.uploads.run(account.id, () => work(NO_RECORDING_UNBATCHED));
    if ('isDownload' in endpoint) return await runUntilSent(budgets, account.id, work, guard);
    const { prepare } = endpoint as { prepare?: (request: AccountRequest) => Promise<void> };
    if (prepare) await budgets.requests.runWithoutSlot(account.id, () => prepare(request));
    if (isBatched && key === null) {
      try {
        return await budgets.requests.runWithoutSlot(account.id, () => work(NO_RECORDING));
      } catch (error) {
        if (!(error instanceof RunLockedError || error instanceof UnbatchedReportError)) throw error;
        guard.reopen();
      }
    }
    const runInSlot = () => budgets.requests.run(account.id, () => work());
    return 'isSlowRead' in endpoint ? await budgets.slowReads.run(account.id, runInSlot) : await runInSlot();
  };
}

/** Rejects a test beyond the budget of the account at once, since the limits and the body cost more than the rejection. */
function requireCapacity(principal: Principal, accountIdText: string, { budgets }: RouterDependencies): void {
  const accountId = integerIdFromText(accountIdText);
  const scope = accountId === null ? null : findScope(principal, accountId);
  if (scope) budgets.endpointTests.requireCapacity(scope.account.id);
}

/** Runs a download, which occupies its slot until the file is sent, or the client has disconnected. */
function runUntilSent(
  { downloads }: AccountBudgets,
  accountId: number,
  work: () => Promise<EndpointResponse>,
  guard: CommitGuard,
): Promise<EndpointResponse> {
  return new Promise((resolve, reject) => {
    const run = async () => {
      const response = await work();
      const content = response.file?.content;
      if (content === null || content === undefined) return resolve(response);
      const closed = new Promise((onClose) => content.once('close', onClose));
      // Nothing reads the file of a request whose caller has got a 503.
      if (guard.isCancelled) content.destroy();
      resolve(response);
      await closed;
    };
    downloads.run(accountId, run).catch(reject);
  });
}

function isUpload({ bodyType }: Endpoint): boolean {
  return bodyType === 'file';
}

async function countCall(budget: string, { requestLimit }: RouterDependencies): Promise<void> {
  await requireAccepted(requestLimit.consume(budget));
}

async function requireAccepted(consumption: Promise<LimitResult>): Promise<void> {
  const result = await consumption;
  if (result.kind === 'rejected') throw new TooManyRequestsError(result.retryAfterSeconds);
}

function hasSideEffect({ method, hasEffect }: Endpoint): boolean {
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

/** Whether the body needs a slot for large bodies. A file is not held in memory. */
function isLarge({ bodyBytesMax = 0, bodyType }: Endpoint, request: Request): boolean {
  if (bodyType === 'file') return false;
  return bodyBytesMax > LARGE_BYTES && Number(request.get('content-length') ?? 0) > LARGE_BYTES;
}

/** A body of unknown length has no slot for large bodies. */
function bodyBytesMaxOf({ bodyBytesMax }: Endpoint, request: Request): number | undefined {
  if (bodyBytesMax === undefined || request.get('transfer-encoding') === undefined) return bodyBytesMax;
  return Math.min(bodyBytesMax, LARGE_BYTES);
}

function requestParts(request: Request): Omit<ParsedRequest, 'body' | 'beforeCommit' | 'requireMemory'> {
  requireUtf8Query(request.url);
  const reportedAddress = request.ip ?? '';
  return {
    param: (name) => [request.params[name] as string | string[]].flat().join('/'),
    query: request.query as ParsedRequest['query'],
    header: (name) => request.get(name),
    isHead: request.method === 'HEAD',
    // A proxy may forward any text as the address of the client.
    clientAddress: isIP(reportedAddress) === 0 ? (request.socket.remoteAddress ?? '') : reportedAddress,
    secure: request.secure,
    origin: `${request.protocol}://${request.host}`,
  };
}

const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
const IDEMPOTENCY_KEY_PATTERN = /^[\x20-\x7e]{1,255}$/;

/**
 * Calls the endpoint; a POST with an `Idempotency-Key` (docs/contract.md#idempotency) once for each key. Rotating an
 * API key is not an endpoint of an account and has no such keys: a repeat carries the old API key, which is rejected.
 */
async function handleOnce(
  endpoint: AccountEndpoint,
  { idempotency, writes }: Pick<RouterDependencies, 'idempotency' | 'writes'>,
  call: { request: AccountRequest; params: object; key: string | null; guard: CommitGuard },
  recorder: ResponseRecorder = NO_RECORDING_UNBATCHED,
): Promise<EndpointResponse> {
  const { request, params, key, guard } = call;
  if (endpoint.method === 'GET') return await endpoint.handle(request);
  const handleWith = (recorder: ResponseRecorder) =>
    endpoint.handle({ ...request, recorder: withCommitCheck(request.beforeCommit, recorder) });
  const { principal, body } = request;
  const keyedRequest = {
    principal,
    request: [endpoint.method, endpoint.path, params],
    body,
    commitGuard: guard,
  };
  const run = () =>
    key === null ? handleWith(recorder) : idempotency.runOnce({ ...keyedRequest, key }, handleWith);
  // A call that waits for an external server writes nothing, and an upload may fail by its client or store.
  if (endpoint.extraTimeMs !== undefined || isUpload(endpoint)) return await run();
  return await writes.track('isBatched' in endpoint ? 'reports' : 'configuration', run);
}

function parseKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (IDEMPOTENCY_KEY_PATTERN.test(header)) return header;
  const message = `${IDEMPOTENCY_KEY_HEADER} must be 1 to 255 printable ASCII characters`;
  throw new InvalidRequestError([{ field: IDEMPOTENCY_KEY_HEADER, message }]);
}
