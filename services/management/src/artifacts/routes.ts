import { basename } from 'node:path/posix';
import { EXTERNAL_FILE_BYTES_MAX, isArtifactPath, PATH_CHARACTERS_MAX } from '@runhook/artifacts';
import { integerIdFromText } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { matchesEtag, parseByteRange } from '../http/byte-range.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  LEASE_TOKEN_HEADER,
  READ_RUNS,
  REPORT_RUNS,
  type WriteRequest,
} from '../http/endpoint.ts';
import { type EndpointResponse, pageExtra } from '../http/envelope.ts';
import { InvalidRequestError, NotFoundError, RangeNotSatisfiableError } from '../http/errors.ts';
import { accountIdOf } from '../http/filter-readers.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import { integer, QueryReader, searchText } from '../http/query-parameters.ts';
import { contentTypeOf, STEP_MAX } from './artifact-path.ts';
import type { Artifacts } from './artifacts.ts';
import type { ModelResult } from './model-scanner.ts';
import {
  type ArtifactFile,
  findArtifactRun,
  findLatestSuccess,
  listModels,
  listPaths,
} from './statements.ts';

const RUN_PATH = '/api/v2/accounts/:account_id/runs/:run_id';
const JOB_PATH = '/api/v2/accounts/:account_id/jobs/:job_id';

/** A stored file in the response to its upload. */
export interface ArtifactView {
  path: string;
  /** Null for a file that belongs to no step. */
  step: number | null;
  bytes: number;
  /** Lowercase hexadecimal digits. */
  sha256: string;
}

/** A model in the list of a run. */
export interface ModelView extends ModelResult {
  run_id: number;
  /** Step of the file; null for a file that belongs to no step. */
  step: number | null;
}

/** Files and models of runs (docs/contract.md#artifacts), on every plan. */
export function artifactEndpoints(artifacts: Artifacts, pool: Pool): AccountEndpoint[] {
  return [
    {
      method: 'PUT',
      path: `${RUN_PATH}/artifacts/*path`,
      access: REPORT_RUNS,
      bodyType: 'file',
      bodyBytesMax: EXTERNAL_FILE_BYTES_MAX,
      handle: (request) => upload(artifacts, request),
    },
    {
      method: 'GET',
      path: `${RUN_PATH}/artifacts`,
      access: READ_RUNS,
      handle: (request) => list(pool, request, (one) => requireRun(pool, one)),
    },
    {
      method: 'GET',
      path: `${RUN_PATH}/artifacts/*path`,
      access: READ_RUNS,
      isDownload: true,
      handle: (request) => download(artifacts, request, runIdOf),
    },
    {
      method: 'GET',
      path: `${RUN_PATH}/models`,
      access: READ_RUNS,
      handle: (request) => models(pool, request),
    },
    {
      method: 'GET',
      path: `${JOB_PATH}/artifacts`,
      access: READ_RUNS,
      isSlowRead: true,
      handle: (request) => list(pool, request, (one) => latestRunOf(pool, one)),
    },
    {
      method: 'GET',
      path: `${JOB_PATH}/artifacts/*path`,
      access: READ_RUNS,
      isDownload: true,
      handle: (request) => download(artifacts, request, (one) => latestRunOf(pool, one)),
    },
  ];
}

/** Finds the run whose files a request reads. Throws a 404 without one. */
type RunOf = (request: AccountRequest) => number | Promise<number>;

async function upload(artifacts: Artifacts, request: WriteRequest): Promise<RecordedResponse> {
  const { account, file, recorder } = request;
  if (file === undefined) throw new TypeError('an upload needs a file');
  const step = readStep(request);
  const path = pathOf(request);
  if (!isArtifactPath(path)) throw invalidPath();
  return await artifacts.upload({
    accountId: account.id,
    runId: runIdOf(request),
    path,
    step: step ?? 0,
    file,
    leaseToken: request.header(LEASE_TOKEN_HEADER) ?? null,
    confirmAccess: request.confirmAccess,
    record: (transaction, stored, replaced) =>
      recorder.record(transaction, {
        code: replaced ? 200 : 201,
        data: artifactView(stored),
        headers: { etag: etagOf(stored) },
      }),
  });
}

async function list(pool: Pool, request: AccountRequest, runOf: RunOf): Promise<EndpointResponse> {
  const step = readStep(request);
  const runId = await runOf(request);
  return { code: 200, data: await listPaths(pool, request.account.id, runId, step) };
}

async function download(
  artifacts: Artifacts,
  request: AccountRequest,
  runOf: RunOf,
): Promise<EndpointResponse> {
  const step = readStep(request);
  const path = pathOf(request);
  // A path that no file can have identifies nothing.
  if (!isArtifactPath(path)) throw new NotFoundError('The run has no such artifact.');
  const accountId = request.account.id;
  const runId = await runOf(request);
  let file = await artifacts.require(accountId, runId, path, step);
  while (true) {
    const response = await fileResponse(artifacts, request, runId, file);
    if (response !== null) return response;
    const current = await artifacts.require(accountId, runId, path, step);
    if (current.objectId === file.objectId) throw artifacts.missing(accountId, runId, file);
    // It was replaced after its row was read.
    file = current;
  }
}

/** Returns null without the content of the file. */
async function fileResponse(
  artifacts: Artifacts,
  request: AccountRequest,
  runId: number,
  file: ArtifactFile,
): Promise<EndpointResponse | null> {
  const etag = etagOf(file);
  const headers = fileHeaders(file);
  if (matchesEtag(request.header('if-none-match'), etag))
    return { code: 304, data: null, headers, file: { content: null } };
  const sized = { ...headers, 'content-length': String(file.bytes) };
  // RFC 9110 defines ranges for GET alone.
  if (request.isHead) return { code: 200, data: null, headers: sized, file: { content: null } };
  const range = rangeOf(request, file, etag);
  const content = await artifacts.open(request.account.id, runId, file, range);
  if (content === null) return null;
  if (range === null) return { code: 200, data: null, headers: sized, file: { content } };
  const { start, end } = range;
  const partial = {
    ...headers,
    'content-length': String(end - start + 1),
    'content-range': `bytes ${start}-${end}/${file.bytes}`,
  };
  return { code: 206, data: null, headers: partial, file: { content } };
}

/** Headers by which browsers save a file instead of showing it: it has the origin of the console. */
function fileHeaders(file: ArtifactFile): Record<string, string> {
  return {
    'content-type': contentTypeOf(file.path),
    'content-disposition': `attachment; filename="${basename(file.path)}"`,
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'accept-ranges': 'bytes',
    // Compression would change the bytes and their number.
    'cache-control': 'no-store, no-transform',
    etag: etagOf(file),
  };
}

function rangeOf(request: AccountRequest, { bytes }: ArtifactFile, etag: string) {
  const condition = request.header('if-range');
  if (condition !== undefined && condition !== etag) return null;
  const range = parseByteRange(request.header('range'), bytes);
  if (range === 'unsatisfiable') throw new RangeNotSatisfiableError(bytes);
  return range;
}

async function models(pool: Pool, request: AccountRequest): Promise<EndpointResponse> {
  const reader = new QueryReader(request.query);
  reader.filter('account_id', accountIdOf(request.account.id));
  const step = reader.filter('step', integer(1, STEP_MAX));
  const status = reader.optional('status', searchText);
  const page = reader.page();
  reader.check();
  const accountId = request.account.id;
  const runId = await requireRun(pool, request);
  const found = await listModels(pool, { accountId, runId }, { step, status }, page);
  const data = found.models.map(
    (model): ModelView => ({ run_id: runId, ...model, step: model.step || null }),
  );
  return { code: 200, data, extra: pageExtra(page, found.totalCount, data.length) };
}

function readStep(request: AccountRequest): number | null {
  const reader = new QueryReader(request.query);
  reader.filter('account_id', accountIdOf(request.account.id));
  const step = reader.filter('step', integer(1, STEP_MAX));
  reader.check();
  return step;
}

/** Returns the path of a file. The slash that clients append to each path does not belong to it. */
function pathOf(request: AccountRequest): string {
  return request.param('path').replace(/\/$/, '');
}

function invalidPath(): InvalidRequestError {
  const rule = `must have up to ${PATH_CHARACTERS_MAX} characters of A-Z a-z 0-9 . _ - and /, no empty segment and no ".."`;
  return new InvalidRequestError([{ field: 'path', message: `path ${rule}` }]);
}

/** Returns the run that the path names. Throws a 404 without one. */
async function requireRun(pool: Pool, request: AccountRequest): Promise<number> {
  const runId = runIdOf(request);
  if (!(await findArtifactRun(pool, request.account.id, runId))) throw new NotFoundError();
  return runId;
}

/** Throws a 404 for text that is not a run id. */
function runIdOf(request: AccountRequest): number {
  const runId = integerIdFromText(request.param('run_id'));
  if (runId === null) throw new NotFoundError();
  return runId;
}

/** Returns the latest successful run of the job. */
async function latestRunOf(pool: Pool, request: AccountRequest): Promise<number> {
  const jobId = integerIdFromText(request.param('job_id'));
  const runId = jobId === null ? null : await findLatestSuccess(pool, request.account.id, jobId);
  if (runId === null) throw new NotFoundError('The job has no successful run.');
  return runId;
}

function artifactView({ path, step, bytes, sha256 }: ArtifactFile): ArtifactView {
  return { path, step: step || null, bytes, sha256 };
}

function etagOf({ sha256 }: ArtifactFile): string {
  return `"${sha256}"`;
}
