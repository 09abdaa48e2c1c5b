import { EVENT_TYPES, FILTER_RUN_STATUSES, formatCount } from '@runhook/contract';
import {
  count,
  microsTime,
  type Parameter,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import { ID_ITEM, parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { PREVIEW_DAYS, PREVIEW_RUNS_MAX, type PreviewView } from './preview.ts';

const EXAMPLE: PreviewView = {
  matched_count: 412,
  total_count: 2_310,
  since: '1794564000000000',
  until: '1795168800000000',
  is_complete: true,
  lowest_rate_limit: 0.001,
};

function namesParameter(name: string, description: string, names: readonly string[]): Parameter {
  const pattern = names.join('|').replaceAll('.', '\\.');
  return queryParameter(name, `${description}, separated by commas.`, {
    type: 'string',
    pattern: `^(?:${pattern})(?:,(?:${pattern}))*$`,
    examples: [names.at(-1) as string],
  });
}

function idsParameter(name: string, description: string): Parameter {
  return queryParameter(name, `${description}, separated by commas. Empty: all.`, {
    type: 'string',
    pattern: `^(?:${ID_ITEM}(?:,${ID_ITEM})*)?$`,
    examples: ['12'],
  });
}

/** Schemas of the OpenAPI document; see docs/contract.md#filters. */
export const previewSchemas: Record<string, Schema> = {
  Preview: responseObject<PreviewView>('Number of events that a webhook would have matched.', {
    matched_count: count('Events that match.'),
    total_count: count('All events of the counted runs.'),
    since: microsTime('Creation of the oldest counted run, or the start of the days.'),
    until: microsTime('When they were counted.'),
    is_complete: {
      type: 'boolean',
      description: `Whether all ${PREVIEW_DAYS} days are counted. False if the count stopped at a limit; \`since\` says where.`,
    },
    lowest_rate_limit: {
      type: 'number',
      minimum: 0,
      description:
        'Value of `rate_limit` below which so many of these deliveries would wait that the account reaches its limit. Without retries.',
    },
  }),
};

/** Paths of the OpenAPI document; see docs/contract.md#filters. */
export const previewPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/preview': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'previewWebhook',
      tags: ['Webhooks'],
      summary: 'Count the recent events that a webhook would match',
      description: `Of the runs that were created in the last ${PREVIEW_DAYS} days, whether or not webhooks existed. Stops at ${formatCount(PREVIEW_RUNS_MAX)} runs, or after some seconds. Also counts events for which a format sends nothing.`,
      parameters: [
        namesParameter('event_types', 'Event types. Default: all', EVENT_TYPES),
        idsParameter('job_ids', 'Ids of jobs'),
        namesParameter('run_statuses', 'Statuses of runs. Default: all', FILTER_RUN_STATUSES.map(String)),
        idsParameter('environment_ids', 'Ids of environments'),
        idsParameter('project_ids', 'Ids of projects'),
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'The counts.', schemaRef('Preview'), EXAMPLE) },
        [400],
      ),
    },
  },
};
