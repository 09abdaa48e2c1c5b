import type { Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';

/*
 * BullMQ's scripts that give a worker a job wake whoever waits for one, whether or not another job is there: after each job of a
 * quiet queue somebody looks in vain, and the worker that took it has looked by itself before. Of seven calls to Redis for
 * a job, three found nothing. Ours wake nobody for the last job in line, and say that it was the last.
 */

/** As BullMQ has it, once in each of the scripts that give a job. */
const WAKES_ALWAYS = 'addBaseMarkerIfNeeded(markerKey, false)\n';
const GIVES_JOB = 'return {rcall("HGETALL", jobKey), jobId, 0, 0}';

/**
 * Wakes others for what is left in line. Otherwise the fourth value of the answer, from which BullMQ reads until when there is
 * nothing if it is above 0, is below it: the moment of the next delayed job, or 1, with a minus.
 */
const WAKES_FOR_MORE = `
  local lastUntil = 0
  if rcall("LLEN", KEYS[1]) > 0 or rcall("ZCARD", KEYS[3]) > 0 then
    addBaseMarkerIfNeeded(markerKey, false)
  else
    local nextDelayed = rcall("ZRANGE", KEYS[7], 0, 0, "WITHSCORES")
    lastUntil = -math.max(1, math.floor((tonumber(nextDelayed[2]) or 0) / 0x1000))
  end
`;
const GIVES_JOB_AND_TELLS = 'return {rcall("HGETALL", jobKey), jobId, 0, lastUntil}';

/** Scripts that give a job, and have the keys of what waits, of what is prioritized and delayed where the others have them. */
const GIVING = /^moveTo(?:Active|Finished):/;

/** The same client, whose scripts tell the last job in line. Those that look otherwise in this version of BullMQ stay as they are. */
export function tellingTheLast<Client extends Redis | Cluster>(client: Client): Client {
  const define = client.defineCommand.bind(client);
  client.defineCommand = (name, definition) => {
    const lua = GIVING.test(name) ? withLast(definition.lua) : definition.lua;
    define(name, { ...definition, lua });
  };
  return client;
}

function withLast(lua: string): string {
  if (lua.split(WAKES_ALWAYS).length !== 2 || lua.split(GIVES_JOB).length !== 2) return lua;
  return lua.replace(WAKES_ALWAYS, WAKES_FOR_MORE).replace(GIVES_JOB, GIVES_JOB_AND_TELLS);
}

/** What the scripts answer: the job's data or null, its id, a wait of a rate limit, and until when there is no job. */
type Given = [job: unknown, id?: unknown, limitMs?: number, until?: number];

/** As far as the backend of a worker is known here. */
interface GivingBackend {
  moveToActive(...given: unknown[]): Promise<Given>;
  moveToFinished(...given: unknown[]): Promise<Given | undefined>;
  waitForJob(seconds: number): Promise<unknown>;
}

/**
 * The same worker, which does not look for another job after the last one in line but waits for the next to come. Whatever is added
 * later wakes it, and from then on it looks again.
 */
export function sparingLooks<Data>(worker: Worker<Data>): Worker<Data> {
  const backend = worker.getBackend() as unknown as GivingBackend;
  const { moveToActive, moveToFinished, waitForJob } = backend;
  /** Until when there is nothing, or 0: told with the last job that was given, of which all answers are in order. */
  let lastUntil: number | null = null;
  const note = (given: Given) => {
    const until = given[3] ?? 0;
    lastUntil = until < 0 ? -until : null;
    return given;
  };
  backend.moveToActive = async (...given) => {
    if (lastUntil === null) return note(await moveToActive.apply(backend, given));
    const until = lastUntil > 1 ? lastUntil : 0;
    lastUntil = null;
    return [null, 0, 0, until];
  };
  backend.moveToFinished = async (...given) => {
    const next = await moveToFinished.apply(backend, given);
    return Array.isArray(next) ? note(next) : next;
  };
  backend.waitForJob = async (seconds) => {
    const marker = await waitForJob.call(backend, seconds);
    lastUntil = null;
    return marker;
  };
  return worker;
}
