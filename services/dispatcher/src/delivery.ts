import type { Deployment, JobRunEvent, Plan } from '@runhook/contract';

/** A delivery as the dispatcher handles it: its row, its event, and its subscription as it is now. */
export interface Delivery {
  id: string;
  /** The day partition, `YYYY-MM-DD`. */
  day: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  trigger: 'automatic' | 'manual';
  /** Attempts made before this cycle began. */
  cycle: number;
  /** Attempts made in all. */
  attemptCount: number;
  nextAttemptAtMs: number | null;
  /** The subscription's name at fan-out: part of the body, which never changes. */
  webhookName: string;
  subscriptionId: string;
  event: JobRunEvent;
  /** Null when the row is gone. */
  target: Target | null;
}

/** Where a delivery goes, as the subscription and its account are at this moment. */
export interface Target {
  clientUrl: string;
  /** The server behind `clientUrl`, see endpoint-of.ts. */
  endpoint: string;
  hmacSecretCiphertext: string;
  active: boolean;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
}
