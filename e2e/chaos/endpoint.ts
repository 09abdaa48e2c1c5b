import { setTimeout as wait } from 'node:timers/promises';
import { type ReceivedRequest, type Receiver, startReceiver } from '@runhook/testing';
import type { SeededRandom } from './seeded-random.ts';

/** One request that came in, as the ledger counts it. */
export interface Arrival {
  eventId: string;
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

/** How an endpoint behaves, by the first part of its path. */
export const HEALTHY = '/healthy';
export const FLAKY = '/flaky';
export const REFUSING = '/refusing';
/** 200, but for while it is held. */
export const HANGING = '/hanging';

const FLAKY_SHARE = 0.3;
const ANSWER_AFTER_MS = { min: 20, max: 120 };

export async function startEndpoint(random: SeededRandom): Promise<Endpoint> {
  const arrivals: Arrival[] = [];
  let held: Promise<void> | null = null;
  let letGo: () => void = () => undefined;
  const statusFor = (path: string) => {
    if (path.startsWith(REFUSING)) return 500;
    return path.startsWith(FLAKY) && random.next() < FLAKY_SHARE ? 503 : 200;
  };
  const respond = async ({ path, body, receivedAt }: ReceivedRequest) => {
    const { eventId, webhooksID } = JSON.parse(body.toString()) as { eventId: string; webhooksID: string };
    const status = statusFor(path);
    arrivals.push({ eventId, subscriptionId: webhooksID, arrivedAtMs: receivedAt, status });
    if (path.startsWith(HANGING)) await held;
    await wait(random.between(ANSWER_AFTER_MS.min, ANSWER_AFTER_MS.max));
    return { status };
  };
  let receiver: Receiver | null = await startReceiver({ respond });
  const { url, port } = receiver;
  const goAway = async () => {
    await receiver?.close();
    receiver = null;
  };
  return {
    url,
    refusedUrl: 'http://127.0.0.1:1/',
    arrivals,
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
      receiver ??= await startReceiver({ port, respond });
    },
    close: goAway,
  };
}
