import { createId, isId } from '@runhook/contract';
import type { Database } from '@runhook/database';
import { findRecovery, findRunningRecovery, insertRecovery } from '../../../data/recoveries.ts';
import { parseRecoveryRequest, type RecoveryRequest } from '../../../domain/recovery-request.ts';
import type { RecoveryView } from '../../../domain/recovery-view.ts';
import { READ_WEBHOOKS, WRITE_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../errors.ts';
import { requiredSubscription } from './delivery-key.ts';
import { RECOVER_PATH, RECOVERY_PATH } from './paths.ts';

const INACTIVE = 'The webhook is inactive: activate it to recover its deliveries.';
const CHANGING = 'The webhook or a recovery of it has just changed: try again.';
/** A recovery that was in the way may have ended by the time it is looked for. */
const TRIES_MAX = 3;

/**
 * Puts back what failed in a window, paced: the answer has the count at once, the dispatcher does the work, and
 * {@link getRecoveryEndpoint} tells how far it is.
 */
export function recoverEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'POST',
    path: RECOVER_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const subscription = await requiredSubscription(pool, request);
      const { fields, problems } = parseRecoveryRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      if (!subscription.active) throw new ConflictError(INACTIVE);
      return { code: 202, data: await begin(pool, subscription.id, fields) };
    },
  };
}

async function begin(
  pool: Database['pool'],
  subscriptionId: string,
  { since, until, status }: RecoveryRequest,
): Promise<RecoveryView> {
  const recovery = { subscriptionId, since, until: until ?? null, deliveryStatus: status };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const begun = await insertRecovery(pool, { id: createId('recovery'), ...recovery });
    if (begun) return begun;
    const running = await findRunningRecovery(pool, subscriptionId);
    if (running) throw new ConflictError(`The recovery ${running} of this webhook is still running.`);
  }
  throw new ConflictError(CHANGING);
}

/** How far a recovery is. */
export function getRecoveryEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: RECOVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const { id: subscriptionId } = await requiredSubscription(pool, request);
      const id = request.param('recovery_id');
      const recovery = isId('recovery', id) ? await findRecovery(pool, { id, subscriptionId }) : null;
      if (!recovery) throw new NotFoundError('Recovery not found.');
      return { code: 200, data: recovery };
    },
  };
}
