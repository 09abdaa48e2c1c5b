// The subscribers' endpoints: record requests with their times and respond with 204. The first part of the path selects
// the behaviour, until a call changes it: /ok responds immediately, /after-<ms> later, /hanging does not respond, /flaky
// rejects the first attempt of some events, /half-failing fails half of its requests at random.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';

/** Received requests, in order; texts are joined by line feeds, which they do not contain. */
export interface ReceivedBatch {
  eventIds: string;
  paths: string;
  timesMs: Float64Array;
  /** For each retry that /flaky requested by Retry-After: milliseconds between its due time and its arrival. */
  lateMs: Float64Array;
  /** The events that /half-failing has received, with the time of the first request of each. */
  firstEventIds: string;
  firstMs: Float64Array;
}

/** Gives later requests to paths with the first prefix the behaviour of the second. */
export interface Change {
  from: string;
  to: string;
}

let eventIds: string[] = [];
let paths: string[] = [];
let timesMs: number[] = [];
const changed = new Map<string, string>();

function onRequest(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? '';
  const [, pathBehaviour = ''] = path.split('/', 2);
  const behaviour = changed.get(pathBehaviour) ?? pathBehaviour;
  if (behaviour === 'hanging') {
    request.on('error', () => undefined).resume();
    return;
  }
  if (behaviour === 'raw') {
    request.resume().on('end', () => response.writeHead(204).end());
    return;
  }
  const delayMs =
    behaviour === 'half-failing'
      ? HALF_MS
      : behaviour.startsWith('after-')
        ? Number.parseInt(behaviour.slice(6), 10)
        : 0;
  request.on('end', () => {
    if (behaviour === 'flaky' && isRejected(request, path)) {
      response.writeHead(503, { 'retry-after': String(RETRY_AFTER_SECONDS) }).end();
      return;
    }
    if (behaviour === 'half-failing' && failsRandomly(request)) {
      setTimeout(() => response.writeHead(503).end(), delayMs);
      return;
    }
    timesMs.push(sharedNowMs());
    eventIds.push(String(request.headers['webhook-id']));
    paths.push(path);
    if (delayMs > 0) setTimeout(() => response.writeHead(204).end(), delayMs);
    else response.writeHead(204).end();
  });
  request.resume();
}

/** Response time of /half-failing in milliseconds. */
const HALF_MS = 20;
/** Time of the first request to /half-failing, by event id. */
const firstMs = new Map<string, number>();

/** Decides whether a request fails, and records the first request of an event. */
function failsRandomly(request: IncomingMessage): boolean {
  const eventId = String(request.headers['webhook-id']);
  if (!firstMs.has(eventId)) firstMs.set(eventId, sharedNowMs());
  return Math.random() < 0.5;
}

const RETRY_AFTER_SECONDS = 3;
/** /flaky rejects every fifth event of each path: so few that no endpoint fails several times in a row. */
const REJECTED_EVERY = 5;
let lateMs: number[] = [];
/** Time at which /flaky rejected an event, by event id. */
const rejectedMs = new Map<string, number>();
const eventsByPath = new Map<string, number>();

/** Decides whether a request is rejected, and records how late a second attempt is. */
function isRejected(request: IncomingMessage, path: string): boolean {
  const eventId = String(request.headers['webhook-id']);
  const beforeMs = rejectedMs.get(eventId);
  if (beforeMs !== undefined) {
    rejectedMs.delete(eventId);
    lateMs.push(sharedNowMs() - beforeMs - RETRY_AFTER_SECONDS * 1_000);
    return false;
  }
  // The offset differs between paths, so that they do not fail simultaneously.
  const count = (eventsByPath.get(path) ?? eventsByPath.size) + 1;
  eventsByPath.set(path, count);
  if (count % REJECTED_EVERY !== 0) return false;
  rejectedMs.set(eventId, sharedNowMs());
  return true;
}

/**
 * Listens on all addresses: every 127.x.y.z is this machine, so one port serves many endpoint addresses. Rejects if the
 * port is in use.
 */
function listen(port: number): Promise<Server> {
  const server = createServer({ keepAliveTimeout: 60_000 }, onRequest);
  server.maxRequestsPerSocket = 0;
  server.requestTimeout = 0;
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, '0.0.0.0', 8_192, () => resolve(server));
  });
}

/** Ports below the ephemeral ones: a port that refuses connections first must still be free when it is opened. */
const CLOSED_PORTS = { first: 20_000, count: 12_000 };

async function findClosedPort(): Promise<number> {
  while (true) {
    const port = CLOSED_PORTS.first + Math.floor(Math.random() * CLOSED_PORTS.count);
    const server = await listen(port).catch(() => null);
    if (server === null) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

serve({
  listen: async () => ((await listen(0)).address() as AddressInfo).port,
  /** Returns a port that refuses connections until it is opened. */
  closedPort: findClosedPort,
  openPort: async (port: number) => void (await listen(port)),
  change: ({ from, to }: Change) => void changed.set(from, to),
  count: () => timesMs.length,
  firstCount: () => firstMs.size,
  take: (): ReceivedBatch => {
    const batch = {
      eventIds: eventIds.join('\n'),
      paths: paths.join('\n'),
      timesMs: Float64Array.from(timesMs),
      lateMs: Float64Array.from(lateMs),
      firstEventIds: [...firstMs.keys()].join('\n'),
      firstMs: Float64Array.from(firstMs.values()),
    };
    eventIds = [];
    paths = [];
    timesMs = [];
    lateMs = [];
    firstMs.clear();
    return batch;
  },
});
