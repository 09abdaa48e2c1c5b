import { setTimeout as wait } from 'node:timers/promises';
import { type ReceivedRequest, type Receiver, startReceiver } from '@runhook/testing';
import { iJsonProblem } from './i-json.ts';
import type { SeededRandom } from './seeded-random.ts';

/** One received request, as the ledger counts it. */
export interface Arrival {
  eventId: string;
  /** Run and event type, as `runKey` formats them. */
  run: string;
  subscriptionId: string;
  /** Milliseconds since the epoch. */
  arrivedAtMs: number;
  /** Status of the response, if the connection was still open. */
  status: number;
}

/** Serves the endpoints of all subscriptions from one server, which can be stopped and restarted, and records the requests. */
export interface Endpoint {
  url: string;
  /** URL of a port that no process listens on. */
  closedPortUrl: string;
  arrivals: Arrival[];
  /** A description of each body that was not I-JSON. */
  invalidBodies: string[];
  /** Resolves when no connection is open, so that all requests of killed processes have been read. */
  waitUntilDisconnected(): Promise<void>;
  /** Delays responses of the hanging paths until `resume` is called. */
  suspend(): void;
  resume(): void;
  /** Closes every connection and rejects new ones. */
  shutDown(): Promise<void>;
  /** Listens on the same port. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

interface DeliveryBody {
  eventId: string;
  eventType: string;
  webhooksID: string;
  data: { runId: string | number };
}

/** Returns a key for a run and one of its events. */
export function runKey(runId: number | string, eventType: string): string {
  return `${runId}/${eventType}`;
}

/** Path prefixes that select how an endpoint responds. */
export const HEALTHY = '/healthy';
export const FLAKY = '/flaky';
export const FAILING = '/failing';
/** Path prefix of endpoints that respond with 200, and while suspended only after `resume`. */
export const HANGING = '/hanging';

const FLAKY_SHARE = 0.3;
const RESPONSE_DELAY_MS = { min: 20, max: 120 };

/** @param host address to listen on; 127.0.0.1 when omitted */
export async function startEndpoint(random: SeededRandom, host = '127.0.0.1'): Promise<Endpoint> {
  const arrivals: Arrival[] = [];
  const invalidBodies: string[] = [];
  let suspended: Promise<void> | null = null;
  let resume: () => void = () => undefined;
  const statusFor = (path: string) => {
    if (path.startsWith(FAILING)) return 500;
    return path.startsWith(FLAKY) && random.next() < FLAKY_SHARE ? 503 : 200;
  };
  const respond = async ({ path, body, receivedAt }: ReceivedRequest) => {
    const { eventId, eventType, webhooksID, data } = JSON.parse(body.toString()) as DeliveryBody;
    const problem = iJsonProblem(body.toString());
    if (problem !== null) invalidBodies.push(`event ${eventId}: ${problem}`);
    const status = statusFor(path);
    const run = runKey(data.runId, eventType);
    arrivals.push({ eventId, run, subscriptionId: webhooksID, arrivedAtMs: receivedAt, status });
    if (path.startsWith(HANGING)) await suspended;
    await wait(random.between(RESPONSE_DELAY_MS.min, RESPONSE_DELAY_MS.max));
    return { status };
  };
  let receiver: Receiver | null = await startReceiver({ host, respond });
  const { url, port } = receiver;
  const shutDown = async () => {
    await receiver?.close();
    receiver = null;
  };
  return {
    url,
    closedPortUrl: 'http://127.0.0.1:1/',
    arrivals,
    invalidBodies,
    waitUntilDisconnected: async () => await receiver?.waitUntilDisconnected(),
    suspend: () => {
      suspended = new Promise((resolve) => {
        resume = resolve;
      });
    },
    resume: () => {
      suspended = null;
      resume();
    },
    shutDown,
    reopen: async () => {
      receiver ??= await startReceiver({ host, port, respond });
    },
    close: shutDown,
  };
}
