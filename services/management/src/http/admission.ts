import { integerIdFromText } from '@runhook/contract';
import type { RecordWrites } from '@runhook/database';
import type { Request, Response } from 'express';
import { findScope, type Principal } from '../identity/principals.ts';
import type { AccountBudgets } from './account-budgets.ts';
import { type Authentication, authenticate, isSameOrigin } from './authentication.ts';
import type { CommitGuard } from './commit-guard.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  authorize,
  type Endpoint,
  type ParsedRequest,
} from './endpoint.ts';
import type { EndpointResponse } from './envelope.ts';
import {
  AccessDeniedError,
  InvalidRequestError,
  RunLockedError,
  StaleCredentialError,
  TooManyRequestsError,
  UnavailableError,
  UnbatchedReportError,
} from './errors.ts';
import {
  type Idempotency,
  NO_RECORDING,
  NO_RECORDING_UNBATCHED,
  type ResponseRecorder,
  withCommitCheck,
} from './idempotency.ts';
import { type LimitResult, requestLimitKey } from './limits.ts';
import type { ReplicaReads } from './replica-reads.ts';
import { recordCaller, requestState } from './request-telemetry.ts';

/** Components that admit a request and limit its work. */
export interface AdmissionDependencies extends Authentication {
  /** Rate limit of an account's requests. */
  requestLimit: { consume(key: string): Promise<LimitResult> };
  idempotency: Idempotency;
  /** Limit of an account's requests with an `Idempotency-Key`, because each stores its response for a day. */
  keyLimit: { consume(key: string): Promise<LimitResult> };
  budgets: AccountBudgets;
  reads: Pick<ReplicaReads, 'recordWrite'>;
  /** Tracks whether calls that write succeed. */
  writes: Pick<RecordWrites, 'track'>;
}

/** The remaining work of an admitted request. */
export type AdmittedHandler = (request: ParsedRequest, guard: CommitGuard) => Promise<EndpointResponse>;

/** Maximum number of admissions of a request whose caller's permissions change repeatedly. */
const ADMISSIONS_MAX = 3;

/**
 * Admits a request as {@link admit} does, but with a cached caller if the commit checks the caller. If the cached
 * caller lacks the permission, or the commit finds that the caller is outdated, the caller is read from the record and
 * the request is decided again. A repeat under an `Idempotency-Key` commits nothing, so its caller is always read.
 * @param isCounted false for a request that has waited, which was counted when it arrived
 */
export async function admitCached(
  endpoint: Endpoint,
  dependencies: AdmissionDependencies,
  request: Request,
  response: Response,
  { isCounted = true }: { isCounted?: boolean } = {},
): Promise<AdmittedHandler> {
  const readCaller = () => admit(endpoint, dependencies, request, response, { isCached: false, isCounted });
  const isCached = 'isBatched' in endpoint && request.get(IDEMPOTENCY_KEY_HEADER) === undefined;
  const firstHandler = await admit(endpoint, dependencies, request, response, { isCached, isCounted }).catch(
    (error) => {
      if (isCached && error instanceof AccessDeniedError) return readCaller();
      throw error;
    },
  );
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
  dependencies: AdmissionDependencies,
  request: Request,
  response: Response,
  { isCached, isCounted }: { isCached: boolean; isCounted: boolean },
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
  if (isCounted && endpoint.access.metered)
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
    if (isUpload(endpoint)) return await budgets.uploads.run(account.id, () => work());
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
function requireCapacity(
  principal: Principal,
  accountIdText: string,
  { budgets }: AdmissionDependencies,
): void {
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

/** Whether the body is a file. */
export function isUpload({ bodyType }: Endpoint): boolean {
  return bodyType === 'file';
}

async function countCall(budget: string, { requestLimit }: AdmissionDependencies): Promise<void> {
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

const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
const IDEMPOTENCY_KEY_PATTERN = /^[\x20-\x7e]{1,255}$/;

/**
 * Calls the endpoint; a POST with an `Idempotency-Key` (docs/contract.md#idempotency) once for each key. Rotating an
 * API key is not an endpoint of an account and has no such keys: a repeat carries the old API key, which is rejected.
 */
async function handleOnce(
  endpoint: AccountEndpoint,
  { idempotency, writes }: Pick<AdmissionDependencies, 'idempotency' | 'writes'>,
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
