import { setTimeout as wait } from 'node:timers/promises';
import { type ReceivedRequest, type Receiver, startReceiver } from '@runhook/testing';
import { iJsonProblem } from './i-json.ts';
import type { SeededRandom } from './seeded-random.ts';

/** One request that came in, as the ledger counts it. */
export interface Arrival {
  eventId: string;
  /** Its run and event type, as `runKey` writes them. */
  run: string;
  subscriptionId: string;
  /** Milliseconds since the epoch. */
  arrivedAtMs: number;
  /** What it was answered, if the connection lived that long. */
  status: number;
}

/** The endpoints of all subscriptions: one server that can be gone and come back, and remembers what came in. */
export interface Endpoint {
  url: string;
  /** Nobody listens there. */
  refusedUrl: string;
  arrivals: Arrival[];
  /** A description of each body that was not I-JSON. */
  invalidBodies: string[];
  /** Resolves when no connection is open: what the dead have sent is in. */
  everyoneGone(): Promise<void>;
  /** From now on the hanging paths do not answer, until they are let go. */
  hold(): void;
  letGo(): void;
  /** Cuts every connection and refuses new ones. */
  goAway(): Promise<void>;
  /** On the same port. */
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

interface DeliveryBody {
  eventId: string;
  eventType: string;
  webhooksID: string;
  data: { runId: string | number };
}

/** How a run and one of its events are named together. */
export function runKey(runId: number | string, eventType: string): string {
  return `${runId}/${eventType}`;
}

/** How an endpoint behaves, by the first part of its path. */
export const HEALTHY = '/healthy';
export const FLAKY = '/flaky';
export const REFUSING = '/refusing';
/** 200, but for while it is held. */
export const HANGING = '/hanging';

const FLAKY_SHARE = 0.3;
const ANSWER_AFTER_MS = { min: 20, max: 120 };

/** @param host where it listens; 127.0.0.1 when omitted */
export async function startEndpoint(random: SeededRandom, host = '127.0.0.1'): Promise<Endpoint> {
  const arrivals: Arrival[] = [];
  const invalidBodies: string[] = [];
  let held: Promise<void> | null = null;
  let letGo: () => void = () => undefined;
  const statusFor = (path: string) => {
    if (path.startsWith(REFUSING)) return 500;
    return path.startsWith(FLAKY) && random.next() < FLAKY_SHARE ? 503 : 200;
  };
  const respond = async ({ path, body, receivedAt }: ReceivedRequest) => {
    const { eventId, eventType, webhooksID, data } = JSON.parse(body.toString()) as DeliveryBody;
    const problem = iJsonProblem(body.toString());
    if (problem !== null) invalidBodies.push(`event ${eventId}: ${problem}`);
    const status = statusFor(path);
    const run = runKey(data.runId, eventType);
    arrivals.push({ eventId, run, subscriptionId: webhooksID, arrivedAtMs: receivedAt, status });
    if (path.startsWith(HANGING)) await held;
    await wait(random.between(ANSWER_AFTER_MS.min, ANSWER_AFTER_MS.max));
    return { status };
  };
  let receiver: Receiver | null = await startReceiver({ host, respond });
  const { url, port } = receiver;
  const goAway = async () => {
    await receiver?.close();
    receiver = null;
  };
  return {
    url,
    refusedUrl: 'http://127.0.0.1:1/',
    arrivals,
    invalidBodies,
    everyoneGone: async () => await receiver?.everyoneGone(),
    hold: () => {
      held = new Promise((resolve) => {
        letGo = resolve;
      });
    },
    letGo: () => {
      held = null;
      letGo();
    },
    goAway,
    comeBack: async () => {
      receiver ??= await startReceiver({ host, port, respond });
    },
    close: goAway,
  };
}
