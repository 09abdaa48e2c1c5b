import { createId, isId } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import type { DeliveryQueue } from '@runhook/queue';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse, ResponseRecorder } from '../http/idempotency.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { requireDispatchersSupport } from '../subscriptions/older-dispatchers.ts';
import { requireEndpoint, requireSubscription } from '../subscriptions/require-subscription.ts';
import { insertEventRecovery, insertRecovery, type RecoveryKey } from './begin-recovery.ts';
import { readWindowEnd } from './count-recovery.ts';
import { countRecovery, previewRecovery } from './preview-recovery.ts';
import { parseRecoveryRequest } from './recovery-request.ts';
import {
  NO_OUTCOME,
  RECOVERY_FIELDS,
  type RecoveryRow,
  readOutcomes,
  recoveryView,
} from './recovery-view.ts';
import { RECOVER_PATH, RECOVERIES_PATH, RECOVERY_PATH } from './routes.ts';

const INACTIVE_MESSAGE = 'The webhook is inactive: activate it to recover its deliveries.';
const CHANGING_MESSAGE = 'The webhook or a recovery of it has just changed: try again.';
/** A conflicting recovery may end between the insert and the read, so both are retried. */
const TRIES_MAX = 3;

interface RecoverDependencies {
  prisma: PrismaClient;
  pool: Pool;
  deliveryQueue: Pick<DeliveryQueue, 'hasOlderDispatcher'>;
}

/** Endpoints of recoveries (docs/contract.md#recovery). */
export function recoveryEndpoints(deps: RecoverDependencies): AccountEndpoint[] {
  return [
    recoverEndpoint(deps),
    listRecoveriesEndpoint(deps),
    getRecoveryEndpoint(deps),
    cancelRecoveryEndpoint(deps),
  ];
}

/**
 * Starts a recovery, or counts what it would send. The response has the number of matching deliveries, the dispatcher
 * sends them at a limited rate, and {@link getRecoveryEndpoint} reports the progress.
 */
function recoverEndpoint({ prisma, pool, deliveryQueue }: RecoverDependencies): AccountEndpoint {
  return {
    method: 'POST',
    path: RECOVER_PATH,
    access: WRITE_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const subscription = await requireSubscription(prisma, request);
      const { fields, problems } = parseRecoveryRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      requireEndpoint(subscription);
      const { since, until, selection, isDryRun } = fields;
      const key = { accountId: request.account.id, subscription };
      if (isDryRun || since === null) {
        const data = await previewRecovery({ prisma, pool }, key, fields);
        return await inPrismaTransaction(prisma, (transaction) =>
          request.recorder.recordWithPrisma(transaction, { code: 200, data }),
        );
      }
      if (!subscription.active) throw new ConflictError(INACTIVE_MESSAGE);
      const { id: subscriptionId } = subscription;
      if (selection.include === null) {
        const recovery = { since, until: until ?? null, deliveryStatus: selection.status };
        return await startRecovery(prisma, request, subscriptionId, (transaction, recoveryKey) =>
          insertRecovery(transaction, { ...recoveryKey, ...recovery }),
        );
      }
      await requireDispatchersSupport(deliveryQueue, ['include']);
      // Before the count, which may take seconds.
      await requireNoRunningRecovery(prisma, subscriptionId);
      const window = { since, until: await readWindowEnd(pool, until) };
      const { totalCount, isLimited: countLimited } = await countRecovery(pool, key, window, selection);
      const { include, resendDelivered } = selection;
      const recovery = { ...window, include, resendDelivered, totalCount, countLimited };
      return await startRecovery(prisma, request, subscriptionId, (transaction, recoveryKey) =>
        insertEventRecovery(transaction, { ...recoveryKey, ...recovery }),
      );
    },
  };
}

/** Inserts a recovery unless the subscription has a running one, or was deactivated. */
async function startRecovery(
  prisma: PrismaClient,
  { account, recorder }: { account: AccountRequest['account']; recorder: ResponseRecorder },
  subscriptionId: string,
  insert: (transaction: Prisma.TransactionClient, key: RecoveryKey) => Promise<boolean>,
): Promise<RecordedResponse> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const response = await inPrismaTransaction(prisma, async (transaction) => {
      const id = createId('recovery');
      if (!(await insert(transaction, { id, accountId: account.id, subscriptionId }))) return null;
      const row = await transaction.recovery.findUniqueOrThrow({ where: { id }, select: RECOVERY_FIELDS });
      return await recorder.recordWithPrisma(transaction, { code: 202, data: recoveryView(row, NO_OUTCOME) });
    });
    if (response) return response;
    await requireNoRunningRecovery(prisma, subscriptionId);
  }
  throw new ConflictError(CHANGING_MESSAGE);
}

async function requireNoRunningRecovery(prisma: PrismaClient, subscriptionId: string): Promise<void> {
  const running = await prisma.recovery.findFirst({
    where: { subscriptionId, status: 'running' },
    select: { id: true },
  });
  if (running) throw new ConflictError(`The recovery ${running.id} of this webhook is still running.`);
}

function listRecoveriesEndpoint({ prisma }: Pick<RecoverDependencies, 'prisma'>): AccountEndpoint {
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
