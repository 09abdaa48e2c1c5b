import { formatCount } from '@runhook/contract';
import { EVENT_INCLUSIONS } from '@runhook/database';
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
import { RECOVERY_COUNT_MAX, type RecoveryCounts } from './count-recovery.ts';
import { RECOVERABLE_STATUSES, RECOVERY_INCLUSIONS, type RecoveryRequest } from './recovery-request.ts';
import {
  RECOVERY_STATUSES,
  type RecoveryOutcome,
  type RecoveryPreview,
  type RecoveryView,
} from './recovery-view.ts';

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

const PREVIEW_EXAMPLE: RecoveryPreview = {
  dry_run: true,
  since: '1795168800000000',
  until: '1795172400000000',
  delivery_status: null,
  include: 'unsent',
  total_count: 126,
  count_limited: false,
  counts: { unsent: 126, failed: 3, cancelled: 0, delivered: 2_181 },
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
  reason: 'The recovery was cancelled by a request.',
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
      description: 'Newest first, as long as the log retains deliveries.',
      parameters: [...PAGE],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of recoveries.', schemaRef('Recovery'), DONE_RECOVERY_EXAMPLE, 'list') },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recover': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'recoverSubscription',
      tags,
      summary: 'Send the failed deliveries or unsent events of a time window',
      description: `Redelivers each matching delivery, as \`redeliver\` does: some fifty a second, oldest first, so that the endpoint is not overloaded. Deliveries that fail again stay failed. With \`include\`, it also sends events that have no delivery, such as those from when the webhook was inactive, and \`dry_run\` counts them first. One recovery of a webhook runs at a time. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('RecoveryRequest', 'The time window.', RECOVERY_REQUEST_EXAMPLE),
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The result of a dry run.', schemaRef('RecoveryPreview'), PREVIEW_EXAMPLE),
          202: success(
            202,
            'The recovery has started; it is already done if no delivery matches.',
            schemaRef('Recovery'),
            RECOVERY_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'The webhook is inactive, has no endpoint, or a recovery of it is running, which the message names; or a dispatcher of an older release is running, which does not support `include`.',
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
      summary: 'Get the progress of a recovery',
      description: 'With the results of the deliveries that it queued again.',
      responses: operationResponses('account', {
        200: success(200, 'The recovery.', schemaRef('Recovery'), DONE_RECOVERY_EXAMPLE),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recovery/{recovery_id}/cancel': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('RecoveryId')],
    post: withIdempotencyKey({
      operationId: 'cancelRecovery',
      tags,
      summary: 'Cancel a recovery',
      description: `No further delivery is queued again; those that already were continue. ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The recovery is cancelled.', schemaRef('Recovery'), CANCELLED_RECOVERY_EXAMPLE),
          409: failureWithReason(409, 'The recovery is not running.', 'The recovery has ended.'),
        },
        BODY_FAILURES,
      ),
    }),
  },
};

const DELIVERY_STATUS: Schema = {
  anyOf: [{ type: 'string', enum: RECOVERABLE_STATUSES }, { type: 'null' }],
  description: 'The state of the deliveries that are redelivered; null for a recovery of events.',
};
const INCLUDE: Schema = {
  type: 'string',
  enum: EVENT_INCLUSIONS,
  description: 'The events that are sent; absent for a recovery of deliveries.',
};
const AGAIN: Schema = { const: true, description: 'Present if delivered events are sent again.' };

export const recoverySchemas: Record<string, Schema> = {
  Recovery: responseObject<RecoveryView>(
    'A recovery: redelivery of the failed or cancelled deliveries of a time window, or delivery of its events.',
    {
      id: prefixedId('wrc_', 'Id of the recovery.'),
      subscription_id: prefixedId('wsu_', 'The webhook of the deliveries.'),
      status: {
        type: 'string',
        enum: RECOVERY_STATUSES,
        description:
          '`running` while deliveries are left; `done` when all are queued again; `cancelled` if it was cancelled, the webhook became inactive or was deleted, or the account lost its webhooks before that.',
      },
      reason: { type: ['string', 'null'], description: 'Reason of the cancellation; otherwise null.' },
      since: microsTime('Start of the window, by the creation of deliveries or the recording of events.'),
      until: microsTime('End of the window (exclusive).'),
      delivery_status: DELIVERY_STATUS,
      include: INCLUDE,
      again: AGAIN,
      total_count: count('Number of matching deliveries at its creation.'),
      count_limited: {
        const: true,
        description: `Present if the count ended after ${formatCount(RECOVERY_COUNT_MAX)} events or some seconds: there may be more, which are sent, too.`,
      },
      recovered_count: count(
        'Number of deliveries queued so far, without those that were redelivered manually before.',
      ),
      outcome: schemaRef('RecoveryOutcome'),
      created_at: microsTime('When it was created. Deliveries that fail later are not included.'),
      completed_at: nullable(microsTime('When it was done or cancelled; null while it is running.')),
    },
    ['include', 'again', 'count_limited'],
  ),

  RecoveryPreview: responseObject<RecoveryPreview>(
    'What a recovery would send.',
    {
      dry_run: { const: true, description: 'Nothing was started.' },
      since: nullable(
        microsTime(
          'Start of the window; without `since` in the request, of the last time for which the webhook was inactive, and null if there was none.',
        ),
      ),
      until: nullable(microsTime('End of the window (exclusive), not later than the call.')),
      delivery_status: DELIVERY_STATUS,
      include: INCLUDE,
      again: AGAIN,
      total_count: count('Number of deliveries that the recovery would send.'),
      count_limited: {
        type: 'boolean',
        description: `Whether the count ended after ${formatCount(RECOVERY_COUNT_MAX)} events or some seconds, so that there may be more.`,
      },
      counts: schemaRef('RecoveryCounts'),
    },
    ['include', 'again'],
  ),

  RecoveryCounts: responseObject<RecoveryCounts>(
    'Number of events in the window by their state. Without `include`, only the deliveries of the status are counted.',
    {
      unsent: count(
        'Events that match the webhook and have no delivery, or one that was cancelled without an attempt.',
      ),
      failed: count('Failed deliveries.'),
      cancelled: count('Deliveries that were cancelled after an attempt.'),
      delivered: count('Delivered events that match the webhook.'),
    },
  ),

  RecoveryOutcome: responseObject<RecoveryOutcome>(
    'Results of its deliveries, without those that were redelivered again since.',
    {
      pending: count('Pending deliveries.'),
      delivered: count('Delivered deliveries.'),
      failed: count('Deliveries that failed again.'),
      cancelled: count('Deliveries that were cancelled because the webhook was deactivated.'),
    },
  ),

  RecoveryRequest: requestObject<RecoveryRequest>(
    'The deliveries or events to send.',
    {
      since: {
        ...TIMESTAMP,
        description: `Deliveries created, or events recorded, at or after this time. Required, except for a dry run: its default is the last time for which the webhook was inactive. ${TIMESTAMP_FORMATS}`,
      },
      until: {
        ...nullable(TIMESTAMP),
        description: `Deliveries created, or events recorded, before this time, which must be later than \`since\`. Default: now. ${TIMESTAMP_FORMATS}`,
      },
      status: {
        anyOf: [{ type: 'string', enum: RECOVERABLE_STATUSES }, { type: 'null' }],
        description: 'State of the deliveries; default: `failed`. Excludes `include`.',
      },
      include: {
        anyOf: [{ type: 'string', enum: RECOVERY_INCLUSIONS }, { type: 'null' }],
        description:
          '`failed`: failed deliveries, as `status`. `unsent`: events that match the webhook as it is now and have no delivery, or one that was cancelled without an attempt. `all`: both, and deliveries that were cancelled after an attempt.',
      },
      again: {
        type: ['boolean', 'null'],
        description: 'Whether `all` sends delivered events again; default: false.',
      },
      dry_run: {
        type: ['boolean', 'null'],
        description:
          'Counts what would be sent and starts nothing; default: false. Also for an inactive webhook, as if it were active.',
      },
    },
    [],
  ),
};
