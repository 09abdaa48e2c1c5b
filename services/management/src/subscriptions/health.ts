import { count, microsTime, responseObject } from '../http/openapi/field-schemas.ts';

/** Health of the endpoint by its attempts (docs/contract.md#health). */
export interface Health {
  status: 'healthy' | 'failing';
  /** Absent while the endpoint is healthy. */
  failing_since?: string;
  consecutive_failures: number;
  /** Absent until an attempt succeeded. */
  last_success_at?: string;
}

/** Columns that the dispatchers maintain. */
interface HealthColumns {
  failingSinceMicros: bigint | null;
  consecutiveFailures: number;
  lastSuccessAtMicros: bigint | null;
}

export function healthOf(row: HealthColumns): Health {
  const { failingSinceMicros, consecutiveFailures, lastSuccessAtMicros } = row;
  return {
    ...(failingSinceMicros === null
      ? { status: 'healthy' }
      : { status: 'failing', failing_since: String(failingSinceMicros) }),
    consecutive_failures: consecutiveFailures,
    ...(lastSuccessAtMicros === null ? {} : { last_success_at: String(lastSuccessAtMicros) }),
  };
}

/** Schema of the OpenAPI document. */
export const HEALTH = responseObject<Health>(
  'Health of the endpoint by its attempts. Only if `include` requests it.',
  {
    status: {
      type: 'string',
      enum: ['healthy', 'failing'],
      description: '`failing` when the latest attempt failed; `healthy` otherwise, also before the first.',
    },
    failing_since: microsTime(
      'Start of the first attempt that failed since the last that succeeded. Absent while it is healthy.',
    ),
    consecutive_failures: count('Number of consecutive failed attempts, up to the latest.'),
    last_success_at: microsTime('Start of the latest attempt that succeeded. Absent until one did.'),
  },
  ['failing_since', 'last_success_at'],
);
