import { setTimeout as wait } from 'node:timers/promises';
import type { Child } from './child.ts';
import { StartFailed } from './start-failed.ts';

const POLL_MS = 50;
const ANSWER_TIMEOUT_MS = 2_000;
const READY_TIMEOUT_MS = 60_000;

/** A service ended before it was ready. */
export class DiedEarly extends StartFailed {}

/** Asks until it says yes. Throws when the child dies, does not get ready in a minute, or the signal is aborted. */
export async function untilReady(
  name: string,
  child: Child,
  isReady: () => Promise<boolean> | boolean,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (true) {
    signal.throwIfAborted();
    const ready = await isReady();
    // Asked after the answer: who answers on its port may be another one, because of which ours could not start.
    if (child.hasExited()) throw new DiedEarly(failure(name, await child.exited, child));
    if (ready) return;
    if (Date.now() > deadline) throw new StartFailed(failure(name, 'was not ready within a minute', child));
    await wait(POLL_MS);
  }
}

/** Whether a GET is answered with 2xx. */
export async function answersWell(url: string, headers: Record<string, string> = {}): Promise<boolean> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

function failure(name: string, how: string, child: Child): string {
  return [`${name} ${how}`, ...child.lastLines().map((line) => `  ${line}`)].join('\n');
}
