import { QUARANTINE_KINDS } from '@runhook/database';
import {
  count,
  microsTime,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { parameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { ITEMS_MAX, type ServiceStateView } from './service-state.ts';

const EXAMPLE: ServiceStateView = {
  record_writable: true,
  quarantined_count: 1,
  quarantined: [
    {
      kind: 'event',
      id: 'wev_3MMmRIeb7hwtfgePeQ9Hc50jDdn',
      reason: '22P05: unsupported Unicode escape sequence',
      created_at: '1795168900123000',
    },
  ],
  source_addresses: ['198.51.100.7/32'],
};

/** Paths of the OpenAPI document; see docs/contract.md#service-state. */
export const serviceStatePaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/service-state': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'getServiceState',
      tags: ['Webhooks'],
      summary: 'Get the state of the service for an account',
      description:
        'Whether the service can record anything now, which events and deliveries of the account are quarantined: a store rejects their data, or the id of an event is on record with other data or has a time outside the log. No other item waits for them; an operator releases or removes them. Also the addresses from which requests reach endpoints.',
      responses: operationResponses('account', {
        200: success(200, 'The state.', schemaRef('ServiceState'), EXAMPLE),
      }),
    },
  },
};

export const serviceStateSchemas: Record<string, Schema> = {
  ServiceState: responseObject<ServiceStateView>(
    'State of the service for an account.',
    {
      record_writable: {
        type: 'boolean',
        description:
          'False after 30 s in which nothing could be recorded: reports get a 503, and deliveries wait.',
      },
      quarantined_count: count('Number of quarantined items of the account.'),
      quarantined: {
        type: 'array',
        description: `The newest ${ITEMS_MAX} of them.`,
        items: responseObject<ServiceStateView['quarantined'][number]>('A quarantined item.', {
          kind: { type: 'string', enum: QUARANTINE_KINDS, description: 'Kind of the item.' },
          id: text(
            'Id of the event, delivery, recovery or notice, or of the webhook of a lane or a status; of a conflict and an event out of range with a hash of the data.',
          ),
          reason: text('Why it was quarantined.'),
          created_at: microsTime('When it was quarantined.'),
        }),
      },
      source_addresses: {
        type: 'array',
        description:
          'Ranges of addresses from which requests reach endpoints, for firewalls. Absent if the operator has not configured them.',
        items: text('A range in CIDR notation, of one address or more.'),
      },
      public_url: text(
        'Address of the console, to which messages of formats link. Absent if the operator has not configured it.',
      ),
    },
    ['source_addresses', 'public_url'],
  ),
};
