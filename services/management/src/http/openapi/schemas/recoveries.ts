import type { RecoveryRequest } from '../../../domain/recovery-request.ts';
import { RECOVERABLE_STATUSES, RECOVERY_STATUSES, type RecoveryView } from '../../../domain/recovery-view.ts';
import { count, microsTime, orNull, prefixedId } from '../field-schemas.ts';
import { answerObject, requestObject } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';
import { MOMENT, MOMENT_FORMS } from './moment.ts';

export const recoverySchemas: Record<string, Schema> = {
  Recovery: answerObject<RecoveryView>('Failed or cancelled deliveries of a window on their way back.', {
    id: prefixedId('wrc_', 'Id of the recovery.'),
    subscription_id: prefixedId('wsu_', 'The webhook whose deliveries it puts back.'),
    status: {
      type: 'string',
      enum: RECOVERY_STATUSES,
      description:
        '`running` while deliveries are left to put back; `done` when all are; `cancelled` when the webhook became inactive or was deleted, or the account lost its webhooks, before that.',
    },
    reason: { type: ['string', 'null'], description: 'Why it was cancelled; null otherwise.' },
    since: microsTime('It concerns deliveries created at this moment or later.'),
    until: microsTime('It concerns deliveries created before this moment.'),
    delivery_status: {
      type: 'string',
      enum: RECOVERABLE_STATUSES,
      description: 'The state of the deliveries that it puts back.',
    },
    total_count: count('How many deliveries matched when it was created.'),
    recovered_count: count(
      'How many it has put back so far. Those that were redelivered by hand before their turn are not among them.',
    ),
    created_at: microsTime('When it was created. What failed later is not its concern.'),
    completed_at: orNull(microsTime('When it was done or cancelled; null while it is running.')),
  }),

  RecoveryRequest: requestObject<RecoveryRequest>(
    'What to put back.',
    {
      since: { ...MOMENT, description: `Deliveries created at this moment or later. ${MOMENT_FORMS}` },
      until: {
        ...orNull(MOMENT),
        description: `Deliveries created before this moment, which must be later than \`since\`. Left out: now. ${MOMENT_FORMS}`,
      },
      status: {
        anyOf: [{ type: 'string', enum: RECOVERABLE_STATUSES }, { type: 'null' }],
        description: 'Which of them. `failed` when left out.',
      },
    },
    ['since'],
  ),
};
