import { webhooksUnavailableReason } from '@runhook/contract';
import type { Delivery, Target } from './delivery.ts';

/** What to do with a queued delivery whose turn has come. */
export type Turn =
  | { kind: 'attempt'; target: Target }
  | { kind: 'cancel'; reason: string }
  /** Its attempt was recorded, and the process died before the queue knew: the next one is not due yet. */
  | { kind: 'wait'; delayMs: number }
  /** Nothing is left to do for this queue job. */
  | { kind: 'skip' };

/** Clocks of the database and of this machine may differ by a little. */
const CLOCK_TOLERANCE_MS = 1_000;

/** The subscription as it is now decides (DESIGN, section 4, "While retries wait"). */
export function turnOf(delivery: Delivery | null, jobCycle: number, nowMs: number): Turn {
  if (delivery?.status !== 'pending' || delivery.cycle !== jobCycle) return { kind: 'skip' };
  const { target } = delivery;
  if (!target || target.deleted) return { kind: 'cancel', reason: 'The subscription was deleted.' };
  if (!target.active) return { kind: 'cancel', reason: 'The subscription is inactive.' };
  const unavailable = webhooksUnavailableReason(target);
  if (unavailable)
    return { kind: 'cancel', reason: `The account's ${unavailable} does not include webhooks.` };
  const earlyMs = (delivery.nextAttemptAtMs ?? 0) - nowMs;
  if (earlyMs > CLOCK_TOLERANCE_MS) return { kind: 'wait', delayMs: earlyMs };
  return { kind: 'attempt', target };
}
