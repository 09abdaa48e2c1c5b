import {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
} from '@runhook/contract';
import {
  answerObject,
  httpStatusText,
  idText,
  microsTime,
  optionalText,
  type Paths,
  type PropertiesOf,
  prefixedId,
  requestObject,
  requiredText,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { inQuery, keyed, PAGE, parameter, requestBody, searchParameter } from '../http/openapi/parameters.ts';
import { answers, OF_A_BODY, success } from '../http/openapi/responses.ts';
import type { SubscriptionView } from './statements.ts';
import type { Verification } from './test-endpoint.ts';

const tags = ['Webhooks'];

// The examples of all features tell one story: a nightly job of account 1 fails, and a webhook tells the pager.

export const SUBSCRIPTION_FIELDS_EXAMPLE = {
  name: 'Runs to the pager',
  description: 'Wakes whoever is on call',
  event_types: ['job.run.completed', 'job.run.errored'],
  job_ids: [12],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
};

const NEW_SUBSCRIPTION: SubscriptionView = {
  id: 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn',
  account_identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  account_id: '1',
  name: 'Runs to the pager',
  description: 'Wakes whoever is on call',
  job_ids: ['12'],
  event_types: ['job.run.completed', 'job.run.errored'],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
  created_at: '1795168700000000',
  updated_at: '1795168700000000',
  http_status_code: '0',
};

export const CREATED_SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  hmac_secret: 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
};

export const SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  dispatched_at: '1795168800123456',
  http_status_code: '200',
};

const DELETED_EXAMPLE = { id: NEW_SUBSCRIPTION.id };
const VERIFICATION_EXAMPLE = { verification_error: null, verification_status_code: '200' };

export const WEBHOOK_WRITERS =
  'Needs, on Enterprise, one of the permission sets `account_admin`, `admin` and `developer`; on Team, the Developer licence of a user, or `account_admin` or `member` of a service token.';

/** See docs/contract.md#subscriptions. */
export const subscriptionPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscriptions': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listSubscriptions',
      tags,
      summary: 'List the subscriptions of an account',
      description: 'Newest first.',
      parameters: [
        searchParameter('in their name, their endpoint or their description'),
        inQuery('active', 'Only those that are active, or only those that are not.', { type: 'boolean' }),
        ...PAGE,
      ],
      responses: answers(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: keyed({
      operationId: 'createSubscription',
      tags,
      summary: 'Create a subscription',
      description: `The answer is the only one that has \`hmac_secret\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'The new webhook.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: answers(
        'account',
        {
          201: success(201, 'It exists.', schemaRef('CreatedSubscription'), CREATED_SUBSCRIPTION_EXAMPLE),
        },
        OF_A_BODY,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'getSubscription',
      tags,
      summary: 'Get a subscription',
      responses: answers('account', {
        200: success(200, 'It.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE),
      }),
    },
    put: {
      operationId: 'updateSubscription',
      tags,
      summary: 'Replace what a subscription says',
      description: `What is left out gets its default, but \`active\` keeps its value. Deliveries already made stay as they are; attempts to come use the new \`client_url\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'All of it.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: answers(
        'account',
        { 200: success(200, 'As it is now.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE) },
        OF_A_BODY,
      ),
    },
    delete: {
      operationId: 'deleteSubscription',
      tags,
      summary: 'Delete a subscription',
      description: `Nothing more is sent to it, and its log of deliveries is gone from the API at once. ${WEBHOOK_WRITERS}`,
      responses: answers('account', {
        200: success(200, 'It is gone.', schemaRef('DeletedSubscription'), DELETED_EXAMPLE, 'deleted'),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/test': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'testSubscription',
      tags,
      summary: 'Send a signed sample to the endpoint',
      description: `Active or not, and without a trace: no entry in the log, no new status. How the endpoint took it is the answer, so a failure of the endpoint is a 200 too. ${WEBHOOK_WRITERS}`,
      responses: answers('account', {
        200: success(200, 'How it went.', schemaRef('Verification'), VERIFICATION_EXAMPLE),
      }),
    },
  },
};

const { nameCharactersMax, descriptionCharactersMax, clientUrlCharactersMax, jobIdsMax } =
  SUBSCRIPTION_LIMITS;

export const EVENT_TYPE: Schema = {
  type: 'string',
  enum: EVENT_TYPES,
  description: EVENT_TYPES.map((type) => `\`${type}\`: ${EVENT_TYPE_TABLE[type].fires}`).join(' '),
};

type StoredView = Omit<SubscriptionView, 'hmac_secret'>;

/** See docs/contract.md#subscriptions. */
const properties: PropertiesOf<StoredView> = {
  id: prefixedId('wsu_', 'Id of the subscription, unique across all regions and deployments.'),
  account_identifier: prefixedId('act_', 'The account in a form that is unique everywhere.'),
  account_id: idText('The number of the account.', '1'),
  name: text('Name of the webhook.'),
  description: text('What the webhook is for. Empty when nobody wrote it down.'),
  job_ids: {
    type: 'array',
    items: idText('Id of a job.', '12'),
    description: 'The jobs that it fires for, in the order given. Empty: every job of the account.',
  },
  event_types: {
    type: 'array',
    items: EVENT_TYPE,
    minItems: 1,
    uniqueItems: true,
    description: 'The events that it fires for, in the order given.',
  },
  client_url: text('Where deliveries are sent.'),
  active: { type: 'boolean', description: 'Whether it fires at all.' },
  created_at: microsTime('When it was created.'),
  updated_at: microsTime('When it was last changed by a request.'),
  dispatched_at: microsTime(
    'Start of the latest attempt to deliver to it, whatever came of it. Absent until there was one.',
  ),
  http_status_code: httpStatusText(
    'Status of the latest attempt: what the endpoint answered, "504" when it did not in time, "502" when it could not be reached. "0" until there was one.',
  ),
  deactivate_reason: text('Why the service made it inactive. Absent unless it did.'),
};

const OPTIONAL = ['dispatched_at', 'deactivate_reason'] as const;

const JOB_ID_OF_REQUEST: Schema = {
  anyOf: [
    { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    { type: 'string', pattern: '^[1-9][0-9]{0,15}$' },
  ],
  description: 'Id of a job of the account: an integer, or its digits as answers have them.',
};

export const subscriptionSchemas: Record<string, Schema> = {
  Subscription: answerObject<StoredView>(
    'A webhook: which events of which jobs go to which endpoint.',
    properties,
    OPTIONAL,
  ),

  CreatedSubscription: answerObject<StoredView & { hmac_secret: string }>(
    'A new webhook, with the secret that no other answer shows.',
    {
      ...properties,
      hmac_secret: {
        type: 'string',
        pattern: '^whsec_[0-9A-Za-z+/]{43}=$',
        description:
          'Secret of the webhook. Keep it: a receiver checks deliveries with it, and it is not shown again. The whole text is the key of the signature in `Authorization`.',
      },
    },
    OPTIONAL,
  ),

  SubscriptionFields: requestObject<SubscriptionFields>(
    'What can be said about a webhook. On an update it replaces what was there: a field that is left out gets its default, but `active` keeps its value.',
    {
      name: requiredText(nameCharactersMax, 'Name of the webhook.'),
      description: optionalText(descriptionCharactersMax, 'What the webhook is for. "" when left out.'),
      event_types: {
        type: 'array',
        items: EVENT_TYPE,
        minItems: 1,
        uniqueItems: true,
        description: 'The events to fire for, at least one, none twice.',
      },
      job_ids: {
        anyOf: [
          { type: 'array', items: JOB_ID_OF_REQUEST, description: 'The jobs to fire for.' },
          { ...JOB_ID_OF_REQUEST, description: 'A single job.' },
          { type: 'null', description: 'Every job of the account.' },
        ],
        description: `The jobs to fire for. Empty, null or left out: every job of the account. At most ${jobIdsMax} different ones; repeats count once. One that the account does not have is a 400 that names it.`,
      },
      client_url: {
        ...requiredText(
          clientUrlCharactersMax,
          'Where to send deliveries: an absolute http or https URL without credentials in it. An address inside the network of the service is refused.',
        ),
        examples: ['https://receiver.example.com/hooks'],
      },
      active: {
        type: 'boolean',
        description: 'Whether it fires. Left out: true on a create, as it was on an update.',
      },
    },
    ['name', 'event_types', 'client_url'],
  ),

  Verification: answerObject<Verification>('How the endpoint took the sample.', {
    verification_error: {
      type: ['string', 'null'],
      description: 'What went wrong, in a sentence; null when the endpoint answered with a 2xx.',
    },
    verification_status_code: httpStatusText(
      'What the endpoint answered; "504" when it did not in time, "502" when it could not be reached.',
    ),
  }),

  DeletedSubscription: answerObject<{ id: string }>('What was deleted.', {
    id: prefixedId('wsu_', 'Id of the subscription that is gone.'),
  }),
};
