import { createId, isId, type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import { parseStored } from '@runhook/database';
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse, ResponseRecorder } from '../http/idempotency.ts';
import { microsFromText, QueryReader, TIMESTAMP_PROBLEM } from '../http/query-parameters.ts';
import { requireEndpoint, requireSubscription } from '../subscriptions/require-subscription.ts';
import { insertRecovery } from './begin-recovery.ts';
import { DELIVERY_STATUSES, type DeliveryStatus } from './delivery.ts';
import { RECOVER_PATH, RECOVERIES_PATH, RECOVERY_PATH } from './routes.ts';

const INACTIVE_MESSAGE = 'The webhook is inactive: activate it to recover its deliveries.';
const CHANGING_MESSAGE = 'The webhook or a recovery of it has just changed: try again.';
/** A conflicting recovery may end between the insert and the read, so both are retried. */
const TRIES_MAX = 3;

/** Endpoints of recoveries (docs/contract.md#recovery). */
export function recoveryEndpoints(deps: { prisma: PrismaClient }): AccountEndpoint[] {
  return [
    recoverEndpoint(deps),
    listRecoveriesEndpoint(deps),
    getRecoveryEndpoint(deps),
    cancelRecoveryEndpoint(deps),
  ];
}

/**
 * Starts a recovery. The response has the number of matching deliveries, the dispatcher redelivers them at a limited
 * rate, and {@link getRecoveryEndpoint} reports the progress.
 */
function recoverEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'POST',
    path: RECOVER_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const subscription = await requireSubscription(prisma, request);
      const { fields, problems } = parseRecoveryRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      if (!subscription.active) throw new ConflictError(INACTIVE_MESSAGE);
      requireEndpoint(subscription);
      return await startRecovery(prisma, request, subscription.id, fields);
    },
  };
}

async function startRecovery(
  prisma: PrismaClient,
  { account, recorder }: { account: AccountRequest['account']; recorder: ResponseRecorder },
  subscriptionId: string,
  { since, until, status }: RecoveryRequest,
): Promise<RecordedResponse> {
  const recovery = {
    accountId: account.id,
    subscriptionId,
    since,
    until: until ?? null,
    deliveryStatus: status,
  };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const response = await inPrismaTransaction(prisma, async (transaction) => {
      const id = createId('recovery');
      if (!(await insertRecovery(transaction, { id, ...recovery }))) return null;
      const row = await transaction.recovery.findUniqueOrThrow({ where: { id }, select: RECOVERY_FIELDS });
      return await recorder.recordWithPrisma(transaction, { code: 202, data: recoveryView(row, NO_OUTCOME) });
    });
    if (response) return response;
    const running = await findRunningRecovery(prisma, subscriptionId);
    if (running) throw new ConflictError(`The recovery ${running} of this webhook is still running.`);
  }
  throw new ConflictError(CHANGING_MESSAGE);
}

function listRecoveriesEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: RECOVERIES_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const page = reader.page();
      reader.check();
      const { id: subscriptionId } = await requireSubscription(prisma, request);
      const where = { subscriptionId };
      const [rows, totalCount] = await Promise.all([
        prisma.recovery.findMany({
          where,
          select: RECOVERY_FIELDS,
          orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
          skip: page.offset,
          take: page.limit,
        }),
        prisma.recovery.count({ where }),
      ]);
      const outcomes = await readOutcomes(prisma, request.account, rows);
      const data = rows.map((row) => recoveryView(row, outcomes.get(row.id)));
      return { code: 200, data, extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

const CANCELLED_REASON = 'The recovery was cancelled by a request.';
const ENDED_MESSAGE = 'The recovery has ended.';

/** Stops a recovery. The deliveries that it has already redelivered continue. */
function cancelRecoveryEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'POST',
    path: `${RECOVERY_PATH}/cancel`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const { id, subscriptionId } = await requireRecovery(prisma, request);
      const key = { id, subscriptionId };
      return await inPrismaTransaction(prisma, async (transaction) => {
        const { count } = await transaction.recovery.updateMany({
          where: { ...key, status: 'running' },
          data: { status: 'cancelled', reason: CANCELLED_REASON, completedAt: new Date() },
        });
        if (count === 0) throw new ConflictError(ENDED_MESSAGE);
        const row = await transaction.recovery.findUniqueOrThrow({ where: key, select: RECOVERY_FIELDS });
        const outcomes = await readOutcomes(transaction, request.account, [row]);
        const data = recoveryView(row, outcomes.get(row.id));
        return await request.recorder.recordWithPrisma(transaction, { code: 200, data });
      });
    },
  };
}

function getRecoveryEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: RECOVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const row = await requireRecovery(prisma, request);
      const outcomes = await readOutcomes(prisma, request.account, [row]);
      return { code: 200, data: recoveryView(row, outcomes.get(row.id)) };
    },
  };
}

/** Statuses of deliveries that a recovery may redeliver. */
export const RECOVERABLE_STATUSES = ['failed', 'cancelled'] as const;
export type RecoverableStatus = (typeof RECOVERABLE_STATUSES)[number];

export const RECOVERY_STATUSES = ['running', 'done', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

export type RecoveryOutcome = Record<DeliveryStatus, number>;

/** A recovery as the API returns it; times are microseconds since the epoch, as digits. */
export interface RecoveryView {
  id: string;
  subscription_id: string;
  status: RecoveryStatus;
  /** Reason of the cancellation. */
  reason: string | null;
  /** Earliest creation of its deliveries, inclusive. */
  since: string;
  /** Latest creation of its deliveries, exclusive. */
  until: string;
  delivery_status: RecoverableStatus;
  /** Number of deliveries that matched when it was created. */
  total_count: number;
  /** Number of redelivered deliveries; ends below `total_count` if other calls redelivered some of them. */
  recovered_count: number;
  /** Number of them by current status, without those that were redelivered again since. */
  outcome: RecoveryOutcome;
  created_at: string;
  completed_at: string | null;
}

/** Body of `POST …/recover`, its times as microseconds since the epoch in digits. */
export interface RecoveryRequest {
  since: string;
  /** The time of the call when omitted. */
  until?: string;
  status: RecoverableStatus;
}

const timestamp = Joi.any().custom((value: unknown, helpers) => {
  const micros = typeof value === 'string' ? microsFromText(value) : null;
  return micros ?? helpers.message({ custom: `{{#label}} ${TIMESTAMP_PROBLEM}` });
});

const schema = Joi.object<RecoveryRequest>({
  since: timestamp.required(),
  until: timestamp.empty(null),
  status: Joi.any()
    .empty(null)
    .valid(...RECOVERABLE_STATUSES)
    .default('failed'),
});

function parseRecoveryRequest(
  body: unknown,
): { fields: RecoveryRequest; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: toProblems(error, 'body') };
  if (value.until !== undefined && BigInt(value.until) <= BigInt(value.since))
    return { problems: [{ field: 'until', message: 'until must be later than since' }] };
  return { fields: value };
}

const RECOVERY_FIELDS = {
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

type RecoveryRow = Prisma.RecoveryGetPayload<{ select: typeof RECOVERY_FIELDS }>;

const NO_OUTCOME: RecoveryOutcome = { pending: 0, delivered: 0, failed: 0, cancelled: 0 };

/** Returns the outcomes by recovery. */
async function readOutcomes(
  prisma: Pick<PrismaClient, 'delivery'>,
  { id: accountId }: AccountRequest['account'],
  rows: readonly RecoveryRow[],
): Promise<Map<string, RecoveryOutcome>> {
  const counts = await prisma.delivery.groupBy({
    by: ['recoveryId', 'status'],
    where: { accountId: BigInt(accountId), recoveryId: { in: rows.map(({ id }) => id) } },
    _count: true,
  });
  const outcomes = new Map<string, RecoveryOutcome>();
  for (const { recoveryId, status, _count } of counts) {
    const id = recoveryId ?? '';
    outcomes.set(id, {
      ...(outcomes.get(id) ?? NO_OUTCOME),
      [parseStored(DELIVERY_STATUSES, status)]: _count,
    });
  }
  return outcomes;
}

function recoveryView(row: RecoveryRow, outcome: RecoveryOutcome = NO_OUTCOME): RecoveryView {
  return {
    id: row.id,
    subscription_id: row.subscriptionId,
    status: parseStored(RECOVERY_STATUSES, row.status),
    reason: row.reason,
    since: String(row.sinceMicros),
    until: String(row.untilMicros),
    delivery_status: parseStored(RECOVERABLE_STATUSES, row.deliveryStatus),
    total_count: row.totalCount,
    recovered_count: row.recoveredCount,
    outcome,
    created_at: String(row.createdAtMicros),
    completed_at: row.completedAtMicros === null ? null : String(row.completedAtMicros),
  };
}

/** Returns the id of the subscription's running recovery, or null. */
async function findRunningRecovery(prisma: PrismaClient, subscriptionId: string): Promise<string | null> {
  const running = await prisma.recovery.findFirst({
    where: { subscriptionId, status: 'running' },
    select: { id: true },
  });
  return running?.id ?? null;
}

/** Returns the recovery that the path names, if it belongs to the subscription in the path. */
async function requireRecovery(prisma: PrismaClient, request: AccountRequest): Promise<RecoveryRow> {
  const { id: subscriptionId } = await requireSubscription(prisma, request);
  const id = request.param('recovery_id');
  const where = { id, subscriptionId };
  const row = isId('recovery', id)
    ? await prisma.recovery.findUnique({ where, select: RECOVERY_FIELDS })
    : null;
  if (!row) throw new NotFoundError('Recovery not found.');
  return row;
}
