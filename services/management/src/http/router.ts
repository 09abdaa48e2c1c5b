import { isIP } from 'node:net';
import { type Request, type Response, Router } from 'express';
import { type AdmissionDependencies, type AdmittedHandler, admitCached, isUpload } from './admission.ts';
import { readBody } from './body.ts';
import { CommitGuard, respondWithinDeadline } from './commit-guard.ts';
import { DEADLINE_MS, type Endpoint, type ParsedRequest } from './endpoint.ts';
import { sendResponse } from './envelope.ts';
import { MethodNotAllowedError } from './errors.ts';
import { type FileUpload, markUpload, openUpload } from './file-upload.ts';
import { LARGE_BYTES, memoryReservation, runWithMemory } from './large-bodies.ts';
import { type LongPoll, withLongPolls } from './long-poll.ts';
import { requireUtf8Query } from './query-encoding.ts';
import { requestState } from './request-telemetry.ts';
import { unservedMethodError } from './unserved-routes.ts';

/** Components that every request passes before its endpoint. */
export interface RouterDependencies extends AdmissionDependencies {
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
      const admit = (isCounted: boolean) =>
        respondWithinDeadline(deadlineMs, new CommitGuard(), () =>
          admitCached(endpoint, dependencies, request, response, { isCounted }),
        );
      const handle = await admit(true);
      const memory = memoryReservation(
        dependencies.budgets.largeBodies,
        response,
        () => requestState(response).accountId,
      );
      if (isLarge(endpoint, request)) await memory.reserve();
      const { body, file } = await readOrOpenBody(endpoint, dependencies, request, response);
      const responseMs = deadlineMs + (endpoint.extraTimeMs ?? 0) + uploadMs(file);
      const respond = (handleAdmitted: AdmittedHandler, query: LongPoll['query'] = {}) => {
        const guard = new CommitGuard();
        const beforeCommit = () => guard.commit();
        const parsedRequest = {
          body,
          file,
          beforeCommit,
          requireMemory: memory.require,
          ...requestParts(request, query),
        };
        const work = () => handleAdmitted(parsedRequest, guard);
        return respondWithinDeadline(responseMs, guard, () => runWithMemory(memory, work));
      };
      const retry = async (poll: LongPoll) => respond(await admit(false), poll.query);
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

/** Whether the body needs a slot for large bodies. A file is streamed. */
function isLarge({ bodyBytesMax = 0, bodyType }: Endpoint, request: Request): boolean {
  if (bodyType === 'file') return false;
  return bodyBytesMax > LARGE_BYTES && Number(request.get('content-length') ?? 0) > LARGE_BYTES;
}

/** A body of unknown length has no slot for large bodies. */
function bodyBytesMaxOf({ bodyBytesMax }: Endpoint, request: Request): number | undefined {
  if (bodyBytesMax === undefined || request.get('transfer-encoding') === undefined) return bodyBytesMax;
  return Math.min(bodyBytesMax, LARGE_BYTES);
}

function requestParts(
  request: Request,
  query: LongPoll['query'],
): Omit<ParsedRequest, 'body' | 'beforeCommit' | 'requireMemory'> {
  requireUtf8Query(request.url);
  const reportedAddress = request.ip ?? '';
  return {
    param: (name) => [request.params[name] as string | string[]].flat().join('/'),
    query: { ...(request.query as ParsedRequest['query']), ...query },
    header: (name) => request.get(name),
    isHead: request.method === 'HEAD',
    // A proxy may forward any text as the address of the client.
    clientAddress: isIP(reportedAddress) === 0 ? (request.socket.remoteAddress ?? '') : reportedAddress,
    secure: request.secure,
    origin: `${request.protocol}://${request.host}`,
  };
}
