import { type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import { EVENT_INCLUSIONS, type EventInclusion } from '@runhook/database';
import Joi from 'joi';
import { microsFromText, TIMESTAMP_PROBLEM } from '../http/query-parameters.ts';

/** Statuses of deliveries that a recovery may redeliver. */
export const RECOVERABLE_STATUSES = ['failed', 'cancelled'] as const;
export type RecoverableStatus = (typeof RECOVERABLE_STATUSES)[number];

export const RECOVERY_INCLUSIONS = ['failed', ...EVENT_INCLUSIONS] as const;

/** Body of `POST …/recover`, its times as microseconds since the epoch in digits. */
export interface RecoveryRequest {
  /** Optional for a dry run. */
  since?: string;
  /** The time of the call when omitted. */
  until?: string;
  status?: RecoverableStatus;
  include?: (typeof RECOVERY_INCLUSIONS)[number];
  again?: boolean;
  dry_run?: boolean;
}

/** The deliveries of a status, or the events, that a recovery sends. */
export type RecoverySelection =
  | { status: RecoverableStatus; include: null }
  | { status: null; include: EventInclusion; resendDelivered: boolean };

export interface ParsedRecovery {
  /** Null only for a dry run. */
  since: string | null;
  until: string | undefined;
  selection: RecoverySelection;
  isDryRun: boolean;
}

const timestamp = Joi.any().custom((value: unknown, helpers) => {
  const micros = typeof value === 'string' ? microsFromText(value) : null;
  return micros ?? helpers.message({ custom: `{{#label}} ${TIMESTAMP_PROBLEM}` });
});

const schema = Joi.object<RecoveryRequest>({
  since: timestamp,
  until: timestamp.empty(null),
  status: Joi.any()
    .empty(null)
    .valid(...RECOVERABLE_STATUSES),
  include: Joi.any()
    .empty(null)
    .valid(...RECOVERY_INCLUSIONS),
  again: Joi.boolean().empty(null),
  dry_run: Joi.boolean().empty(null),
});

export function parseRecoveryRequest(
  body: unknown,
): { fields: ParsedRecovery; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  const problems = error ? toProblems(error, 'body') : [];
  const hasFields = problems.every(({ field }) => field !== 'body');
  if (hasFields) problems.push(...problemsOf(value));
  return problems.length > 0 ? { problems } : { fields: parsedRecovery(value) };
}

function problemsOf({ since, until, status, include, again, dry_run }: RecoveryRequest): Problem[] {
  const problems: Problem[] = [];
  if (since === undefined && dry_run !== true)
    problems.push({ field: 'since', message: 'since is required' });
  if (isMicros(since) && isMicros(until) && BigInt(until) <= BigInt(since))
    problems.push({ field: 'until', message: 'until must be later than since' });
  if (status !== undefined && include !== undefined)
    problems.push({ field: 'include', message: 'include must not be combined with status' });
  if (again === true && include !== 'all')
    problems.push({ field: 'again', message: 'again requires include to be all' });
  return problems;
}

/** Whether the value was parsed: an invalid one is left as it is. */
function isMicros(value: unknown): value is string {
  return typeof value === 'string' && /^\d+$/.test(value);
}

function parsedRecovery(request: RecoveryRequest): ParsedRecovery {
  const {
    since = null,
    until,
    status = 'failed',
    include,
    again: resendDelivered = false,
    dry_run: isDryRun = false,
  } = request;
  const selection: RecoverySelection =
    include === undefined || include === 'failed'
      ? { status, include: null }
      : { status: null, include, resendDelivered };
  return { since, until, selection, isDryRun };
}
