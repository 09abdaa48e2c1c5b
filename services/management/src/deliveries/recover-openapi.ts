import {
  count,
  microsTime,
  nullable,
  type Paths,
  prefixedId,
  requestObject,
  responseObject,
  type Schema,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { SUBSCRIPTION_EXAMPLE, WEBHOOK_WRITERS } from '../subscriptions/openapi.ts';
import {
  RECOVERABLE_STATUSES,
  RECOVERY_STATUSES,
  type RecoveryOutcome,
  type RecoveryRequest,
  type RecoveryView,
} from './recover.ts';

const tags = ['Deliveries'];

const RECOVERY_REQUEST_EXAMPLE = { since: '2026-11-20T10:00:00Z', status: 'failed' };

const RECOVERY_EXAMPLE: RecoveryView = {
  id: 'wrc_3MMmREvOSGeIvAOczCddVh2Ios8',
  subscription_id: SUBSCRIPTION_EXAMPLE.id,
  status: 'running',
  reason: null,
  since: '1795168800000000',
  until: '1795172400000000',
  delivery_status: 'failed',
  total_count: 250,
  recovered_count: 0,
  outcome: { pending: 0, delivered: 0, failed: 0, cancelled: 0 },
  created_at: '1795172400000000',
  completed_at: null,
};

const DONE_RECOVERY_EXAMPLE: RecoveryView = {
  ...RECOVERY_EXAMPLE,
  status: 'done',
  recovered_count: 250,
  outcome: { pending: 0, delivered: 243, failed: 7, cancelled: 0 },
  completed_at: '1795172406000000',
};

const CANCELLED_RECOVERY_EXAMPLE: RecoveryView = {
  ...RECOVERY_EXAMPLE,
  status: 'cancelled',
  reason: 'It was stopped.',
  recovered_count: 100,
  outcome: { pending: 0, delivered: 0, failed: 100, cancelled: 0 },
  completed_at: '1795172403000000',
};

const RECOVERIES = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recoveries';

export const recoveryPaths: Paths = {
  [RECOVERIES]: {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'listRecoveries',
      tags,
      summary: 'List the recoveries of a subscription',
      description: 'Newest first, as long as the log keeps deliveries.',
      parameters: [...PAGE],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Recovery'), DONE_RECOVERY_EXAMPLE, 'list') },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recover': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'recoverSubscription',
      tags,
      summary: 'Deliver again what failed in a window',
      description: `Each delivery that matches is delivered again as \`redeliver\` would do it, some fifty a second, the oldest first, so that the endpoint is not flooded. What fails again stays failed. One recovery of a webhook runs at a time. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('RecoveryRequest', 'The window.', RECOVERY_REQUEST_EXAMPLE),
      responses: operationResponses(
        'account',
        {
          202: success(
            202,
            'It has begun; it is done already when nothing matches.',
            schemaRef('Recovery'),
            RECOVERY_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'The webhook is inactive, or a recovery of it is running: its id is in the message.',
            `The recovery ${RECOVERY_EXAMPLE.id} of this webhook is still running.`,
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recovery/{recovery_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('RecoveryId')],
    get: {
      operationId: 'getRecovery',
      tags,
      summary: 'See how far a recovery is',
      description: 'And what has become of the deliveries that it put back.',
      responses: operationResponses('account', {
        200: success(200, 'It.', schemaRef('Recovery'), DONE_RECOVERY_EXAMPLE),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recovery/{recovery_id}/cancel': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('RecoveryId')],
    post: withIdempotencyKey({
      operationId: 'cancelRecovery',
      tags,
      summary: 'Stop a recovery',
      description: `Nothing more is put back; what was put back already goes on. ${WEBHOOK_WRITERS}`,
      responses: operationResponses('account', {
        200: success(200, 'It has stopped.', schemaRef('Recovery'), CANCELLED_RECOVERY_EXAMPLE),
        409: failureWithReason(409, 'It is not running.', 'The recovery has ended.'),
      }),
    }),
  },
};

export const recoverySchemas: Record<string, Schema> = {
  Recovery: responseObject<RecoveryView>('Failed or cancelled deliveries of a window on their way back.', {
    id: prefixedId('wrc_', 'Id of the recovery.'),
    subscription_id: prefixedId('wsu_', 'The webhook whose deliveries it puts back.'),
    status: {
      type: 'string',
      enum: RECOVERY_STATUSES,
      description:
        '`running` while deliveries are left to put back; `done` when all are; `cancelled` when it was stopped, the webhook became inactive or was deleted, or the account lost its webhooks, before that.',
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
    outcome: schemaRef('RecoveryOutcome'),
    created_at: microsTime('When it was created. What failed later is not its concern.'),
    completed_at: nullable(microsTime('When it was done or cancelled; null while it is running.')),
  }),

  RecoveryOutcome: responseObject<RecoveryOutcome>(
    'What has become of the deliveries that it put back, without those that were put back again since.',
    {
      pending: count('On their way.'),
      delivered: count('That have arrived.'),
      failed: count('That failed again.'),
      cancelled: count('That were cancelled: the webhook was switched off meanwhile.'),
    },
  ),

  RecoveryRequest: requestObject<RecoveryRequest>(
    'What to put back.',
    {
      since: {
        ...TIMESTAMP,
        description: `Deliveries created at this moment or later. ${TIMESTAMP_FORMATS}`,
      },
      until: {
        ...nullable(TIMESTAMP),
        description: `Deliveries created before this moment, which must be later than \`since\`. Left out: now. ${TIMESTAMP_FORMATS}`,
      },
      status: {
        anyOf: [{ type: 'string', enum: RECOVERABLE_STATUSES }, { type: 'null' }],
        description: 'Which of them. `failed` when left out.',
      },
    },
    ['since'],
  ),
};
