/** What a recovery may put back. */
export const RECOVERABLE_STATUSES = ['failed', 'cancelled'] as const;
export type RecoverableStatus = (typeof RECOVERABLE_STATUSES)[number];

export const RECOVERY_STATUSES = ['running', 'done', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

/** A recovery as the API answers it; times are microseconds since the epoch, as digits. */
export interface RecoveryView {
  id: string;
  subscription_id: string;
  status: RecoveryStatus;
  /** Why it was cancelled. */
  reason: string | null;
  /** Deliveries created at or after it. */
  since: string;
  /** Deliveries created before it. */
  until: string;
  delivery_status: RecoverableStatus;
  /** How many deliveries matched when it was created. */
  total_count: number;
  /** How many have been put back; less than `total_count` in the end when others put some back meanwhile. */
  recovered_count: number;
  created_at: string;
  completed_at: string | null;
}
