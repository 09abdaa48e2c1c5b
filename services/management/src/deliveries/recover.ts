import { createId, isId, type Problem, problemsOf, VALIDATION_OPTIONS } from '@runhook/contract';
import { storedAs } from '@runhook/database';
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { type AccountEndpoint, READ_WEBHOOKS, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import type { Keeper, KeptAnswer } from '../http/idempotency.ts';
import { MOMENT_PROBLEM, microsFromText } from '../http/query-parameters.ts';
import { requiredSubscription } from '../subscriptions/required-subscription.ts';
import { insertRecovery } from './begin-recovery.ts';
import { RECOVER_PATH, RECOVERY_PATH } from './routes.ts';

const INACTIVE = 'The webhook is inactive: activate it to recover its deliveries.';
const CHANGING = 'The webhook or a recovery of it has just changed: try again.';
/** A recovery that was in the way may have ended by the time it is looked for. */
const TRIES_MAX = 3;

/**
 * Puts back what failed in a window, paced: the answer has the count at once, the dispatcher does the work, and
 * {@link getRecoveryEndpoint} tells how far it is.
 */
export function recoverEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'POST',
    path: RECOVER_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const subscription = await requiredSubscription(prisma, request);
      const { fields, problems } = parseRecoveryRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      if (!subscription.active) throw new ConflictError(INACTIVE);
      return await begin(prisma, request.keep, subscription.id, fields);
    },
  };
}

async function begin(
  prisma: PrismaClient,
  keep: Keeper,
  subscriptionId: string,
  { since, until, status }: RecoveryRequest,
): Promise<KeptAnswer> {
  const recovery = { subscriptionId, since, until: until ?? null, deliveryStatus: status };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const begun = await inPrismaTransaction(prisma, async (transaction) => {
      const id = createId('recovery');
      if (!(await insertRecovery(transaction, { id, ...recovery }))) return null;
      const row = await transaction.recovery.findUniqueOrThrow({ where: { id }, select: SHOWN });
      return await keep.withinPrisma(transaction, { code: 202, data: recoveryView(row) });
    });
    if (begun) return begun;
    const running = await findRunningRecovery(prisma, subscriptionId);
    if (running) throw new ConflictError(`The recovery ${running} of this webhook is still running.`);
  }
  throw new ConflictError(CHANGING);
}

/** How far a recovery is. */
export function getRecoveryEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: RECOVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const { id: subscriptionId } = await requiredSubscription(prisma, request);
      const id = request.param('recovery_id');
      const recovery = isId('recovery', id) ? await findRecovery(prisma, { id, subscriptionId }) : null;
      if (!recovery) throw new NotFoundError('Recovery not found.');
      return { code: 200, data: recovery };
    },
  };
}

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

/** Body of `POST …/recover`, its times as microseconds since the epoch in digits. */
export interface RecoveryRequest {
  since: string;
  /** Omitted: the moment of the call. */
  until?: string;
  status: RecoverableStatus;
}

const moment = Joi.any().custom((value: unknown, helpers) => {
  const micros = typeof value === 'string' ? microsFromText(value) : null;
  return micros ?? helpers.message({ custom: `{{#label}} ${MOMENT_PROBLEM}` });
});

const schema = Joi.object<RecoveryRequest>({
  since: moment.required(),
  until: moment.empty(null),
  status: Joi.any()
    .empty(null)
    .valid(...RECOVERABLE_STATUSES)
    .default('failed'),
});

function parseRecoveryRequest(
  body: unknown,
): { fields: RecoveryRequest; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: problemsOf(error, 'body') };
  if (value.until !== undefined && BigInt(value.until) <= BigInt(value.since))
    return { problems: [{ field: 'until', message: 'until must be later than since' }] };
  return { fields: value };
}

const SHOWN = {
  id: true,
  subscriptionId: true,
  status: true,
  reason: true,
  sinceMicros: true,
  untilMicros: true,
  deliveryStatus: true,
  totalCount: true,
  recoveredCount: true,
  createdAtMicros: true,
  completedAtMicros: true,
} satisfies Prisma.RecoverySelect;

function recoveryView(row: Prisma.RecoveryGetPayload<{ select: typeof SHOWN }>): RecoveryView {
  return {
    id: row.id,
    subscription_id: row.subscriptionId,
    status: storedAs(RECOVERY_STATUSES, row.status),
    reason: row.reason,
    since: String(row.sinceMicros),
    until: String(row.untilMicros),
    delivery_status: storedAs(RECOVERABLE_STATUSES, row.deliveryStatus),
    total_count: row.totalCount,
    recovered_count: row.recoveredCount,
    created_at: String(row.createdAtMicros),
    completed_at: row.completedAtMicros === null ? null : String(row.completedAtMicros),
  };
}

/** The id of the subscription's recovery that runs, or null. */
async function findRunningRecovery(prisma: PrismaClient, subscriptionId: string): Promise<string | null> {
  const running = await prisma.recovery.findFirst({
    where: { subscriptionId, status: 'running' },
    select: { id: true },
  });
  return running?.id ?? null;
}

async function findRecovery(
  prisma: PrismaClient,
  key: { id: string; subscriptionId: string },
): Promise<RecoveryView | null> {
  const row = await prisma.recovery.findUnique({ where: key, select: SHOWN });
  return row && recoveryView(row);
}
