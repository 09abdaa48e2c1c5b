import {
  FILTER_LIMITS,
  FILTER_NAMES,
  FILTER_RUN_STATUSES,
  FORMAT_NAMES,
  FORMAT_OPTION_NAME,
  LABEL_KEY,
  MASK,
  OPTION_LIMITS,
  type SubscriptionFields,
} from '@runhook/contract';
import { nullable, type PropertiesOf, type Schema } from '../http/openapi/field-schemas.ts';
import type { OptionsView } from './delivery-options.ts';

/** Names of the fields that are absent from responses unless they are set, and unchanged by an update that omits them. */
export const OPTIONS = [
  'format',
  'format_options',
  'filters',
  'ordered',
  'rate_limit',
  'labels',
  'deactivate_on_410',
] as const satisfies readonly (keyof OptionsView)[];

const [defaultFormat, ...otherFormats] = FORMAT_NAMES;
const RATE_LIMITS: Schema = { minimum: OPTION_LIMITS.rateLimitMin, maximum: OPTION_LIMITS.rateLimitMax };
const FILTER_ITEMS = {
  run_statuses: {
    maxItems: FILTER_RUN_STATUSES.length,
    description: 'Values of `runStatusCode`: 3 Running, 10 Success, 20 Errored.',
  },
  environment_ids: { maxItems: FILTER_LIMITS.environmentIdsMax, description: 'Ids of environments.' },
  project_ids: { maxItems: FILTER_LIMITS.projectIdsMax, description: 'Ids of projects.' },
} as const satisfies Record<(typeof FILTER_NAMES)[number], Schema>;

function filterProperties(schemaOf: (name: (typeof FILTER_NAMES)[number]) => Schema): Record<string, Schema> {
  return Object.fromEntries(FILTER_NAMES.map((name) => [name, schemaOf(name)]));
}

/** Schemas of the options in responses. */
export const OPTION_RESPONSE_PROPERTIES: PropertiesOf<OptionsView> = {
  format: {
    type: 'string',
    enum: otherFormats,
    description: 'Format of the body. Absent if it is the payload of job run events.',
  },
  format_options: {
    type: 'object',
    additionalProperties: { type: 'string', const: MASK },
    description: 'Names of the options of the format; their values are not shown. Absent if there are none.',
  },
  filters: {
    type: 'object',
    properties: filterProperties((name) => ({
      type: 'array',
      items: { type: 'string', pattern: '^[1-9][0-9]*$' },
      minItems: 1,
      description: FILTER_ITEMS[name].description,
    })),
    additionalProperties: false,
    description: 'Only events that match each of these. Absent without filters.',
  },
  ordered: {
    type: 'boolean',
    const: true,
    description: 'The events of a run are sent in order. Absent otherwise.',
  },
  rate_limit: {
    type: 'number',
    ...RATE_LIMITS,
    description: 'Maximum requests per second. Absent without a limit.',
  },
  labels: {
    type: 'object',
    additionalProperties: { type: 'string', maxLength: OPTION_LIMITS.labelValueCharactersMax },
    description: 'Labels of the user. Absent if there are none.',
  },
  deactivate_on_410: {
    type: 'boolean',
    const: true,
    description: 'The response `410 Gone` deactivates the webhook. Absent otherwise.',
  },
};

const UNCHANGED = 'Default: unchanged on an update';

/** Schemas of the options in requests. */
export const OPTION_REQUEST_PROPERTIES: PropertiesOf<Pick<SubscriptionFields, (typeof OPTIONS)[number]>> = {
  format: {
    anyOf: [{ type: 'string', enum: FORMAT_NAMES }, { type: 'null' }],
    description: `Format of the body, for targets with a format of their own; null and \`${defaultFormat}\`: the payload of job run events. ${UNCHANGED}.`,
    examples: ['slack'],
  },
  format_options: {
    type: ['object', 'null'],
    propertyNames: { type: 'string', pattern: FORMAT_OPTION_NAME.source },
    additionalProperties: {
      type: 'string',
      minLength: 1,
      maxLength: OPTION_LIMITS.formatOptionCharactersMax,
    },
    maxProperties: OPTION_LIMITS.formatOptionsMax,
    description: `Options of the format, such as \`routing_key\` of \`pagerduty\`. Values are stored encrypted and never shown; \`${MASK}\` keeps the stored value. ${UNCHANGED}, but none if the format changes. If \`client_url\` changes to another server, all values must be supplied again.`,
    examples: [{ routing_key: '0123456789abcdef0123456789abcdef' }],
  },
  filters: {
    type: ['object', 'null'],
    properties: filterProperties((name) => ({
      ...FILTER_ITEMS[name],
      type: ['array', 'null'],
      items:
        name === 'run_statuses'
          ? {
              type: ['integer', 'string'],
              enum: [...FILTER_RUN_STATUSES, ...FILTER_RUN_STATUSES.map(String)],
            }
          : { type: ['integer', 'string'], minimum: 1, pattern: '^[1-9][0-9]*$' },
    })),
    additionalProperties: false,
    description: `Only events that match each of these, in addition to \`event_types\` and \`job_ids\`. Digits in strings, as in responses, are accepted as well. Filters that match no event of \`event_types\` are a 400. ${UNCHANGED}; null: none.`,
    examples: [{ run_statuses: [20] }],
  },
  ordered: {
    type: ['boolean', 'null'],
    description: `Whether the events of a run are sent in the order started, errored, completed. ${UNCHANGED}; null: false.`,
  },
  rate_limit: {
    ...nullable({ ...RATE_LIMITS, type: 'number' }),
    description: `Maximum requests per second, without tests. ${UNCHANGED}; null: no limit.`,
    examples: [5],
  },
  labels: {
    type: ['object', 'null'],
    propertyNames: { type: 'string', pattern: LABEL_KEY.source },
    additionalProperties: { type: 'string', maxLength: OPTION_LIMITS.labelValueCharactersMax },
    maxProperties: OPTION_LIMITS.labelsMax,
    description: `Up to ${OPTION_LIMITS.labelsMax} labels, for filters of the list and for infrastructure as code. ${UNCHANGED}; null or empty: none.`,
    examples: [{ team: 'data' }],
  },
  deactivate_on_410: {
    type: ['boolean', 'null'],
    description: `Whether the response \`410 Gone\` deactivates the webhook at once. ${UNCHANGED}; null: false.`,
  },
};
