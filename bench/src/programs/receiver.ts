// The subscribers' endpoints: notes what arrives and when, and answers 204. Its behaviour is in the path's first part:
// /ok at once, /after-<ms> later, /never not at all.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';

/** What has arrived, in order; texts joined by line feeds, which are in none of them. */
export interface ReceivedBatch {
  eventIds: string;
  paths: string;
  timesMs: Float64Array;
}

let eventIds: string[] = [];
let paths: string[] = [];
let timesMs: number[] = [];
let signatures = new Map<string, Set<string>>();
/** Requests to /never: those that were let go by the sender count as much as those that still wait. */
let unanswered = 0;

function onRequest(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? '';
  if (path.startsWith('/never')) {
    unanswered += 1;
    request.on('error', () => undefined).resume();
    return;
  }
  if (path.startsWith('/raw')) {
    request.resume().on('end', () => response.writeHead(204).end());
    return;
  }
  const delayMs = path.startsWith('/after-') ? Number.parseInt(path.slice(7), 10) : 0;
  request.on('end', () => {
    timesMs.push(sharedNowMs());
    eventIds.push(String(request.headers['webhook-id']));
    paths.push(path);
    if (delayMs > 0) setTimeout(() => response.writeHead(204).end(), delayMs);
    else response.writeHead(204).end();
  });
  if (path.startsWith('/signed')) noteSignature(request, path);
  request.resume();
}

/** Which secret signed a request, for the scenario that changes it: the body is needed, so only there. */
function noteSignature(request: IncomingMessage, path: string): void {
  const seen = signatures.get(path) ?? new Set();
  signatures.set(path, seen.add(String(request.headers.authorization)));
}

const server = createServer({ keepAliveTimeout: 60_000 }, onRequest);
server.maxRequestsPerSocket = 0;
server.requestTimeout = 0;

serve({
  listen: () =>
    new Promise<number>((resolve) => {
      // Every 127.x.y.z is this machine: many endpoints of different addresses, one port.
      server.listen(0, '0.0.0.0', 8_192, () => resolve((server.address() as AddressInfo).port));
    }),
  count: () => timesMs.length,
  unanswered: () => unanswered,
  take: (): ReceivedBatch => {
    const batch = {
      eventIds: eventIds.join('\n'),
      paths: paths.join('\n'),
      timesMs: Float64Array.from(timesMs),
    };
    eventIds = [];
    paths = [];
    timesMs = [];
    signatures = new Map();
    unanswered = 0;
    return batch;
  },
});
