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

const DELETED = 'The subscription was deleted.';

/** The subscription as it is now decides (DESIGN, section 4, "While retries wait"). */
export function turnOf(delivery: Delivery | null, jobCycle: number, nowMs: number): Turn {
  if (delivery?.status !== 'pending' || delivery.cycle !== jobCycle) return { kind: 'skip' };
  const { target } = delivery;
  if (!target) return { kind: 'cancel', reason: DELETED };
  const reason = undeliverableReason(target);
  if (reason !== null) return { kind: 'cancel', reason };
  const earlyMs = (delivery.nextAttemptAtMs ?? 0) - nowMs;
  if (earlyMs > CLOCK_TOLERANCE_MS) return { kind: 'wait', delayMs: earlyMs };
  return { kind: 'attempt', target };
}

/** Why nothing may be sent there now; null when it may. */
export function undeliverableReason(
  target: Pick<Target, 'active' | 'deleted' | 'plan' | 'deployment'>,
): string | null {
  if (target.deleted) return DELETED;
  if (!target.active) return 'The subscription is inactive.';
  const unavailable = webhooksUnavailableReason(target);
  return unavailable ? `The account's ${unavailable} does not include webhooks.` : null;
}
