import {
  integerId,
  microsecondsTime,
  nullable,
  type Paths,
  type PropertiesOf,
  prefixedId,
  requestObject,
  requiredName,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  accountParameter,
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  relatedParameter,
  requestBody,
  searchParameter,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { REPORTERS } from '../http/openapi/permissions.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { JOB_RELATED, type JobWithRelated } from './add-related.ts';
import { definitionOf } from './definition.ts';
import { DEFINITION_PROPERTIES, DEFINITION_REQUEST_PROPERTIES } from './definition-openapi.ts';
import { JOB_ORDERS } from './job-list.ts';
import { JOB_NAME_CHARACTERS_MAX, type JobFields } from './job-request.ts';
import type { JobResponse } from './job-response.ts';
import type { WebhookOfJob } from './job-writes.ts';
import { idsFilter, NAME_FILTERS, STATE_FILTER } from './list-openapi.ts';

const tags = ['Jobs and runs'];

const JOB_EXAMPLE: JobResponse = {
  id: 12,
  account_id: 1,
  name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
  ...definitionOf({ execute_steps: ['dbt build'] }),
  generate_sources: false,
  raw_dbt_version: null,
  is_deferrable: false,
  deactivated: false,
  is_system: false,
  state: 1,
  created_at: '2026-01-15T08:00:00.000000Z',
  updated_at: '2026-01-15T08:00:00.000000Z',
};

const { name, project_name, environment_name, execute_steps } = JOB_EXAMPLE;

const RELATED = relatedParameter(JOB_RELATED);

/** Paths of the OpenAPI document; see docs/contract.md#jobs. */
export const jobPaths: Paths = {
  '/api/v2/accounts/{account_id}/jobs': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listJobs',
      tags,
      summary: 'List the jobs of an account',
      description: 'Newest first.',
      parameters: [
        searchParameter('in their name, or whose id begins with it'),
        ...NAME_FILTERS,
        queryParameter('ids', `Only these jobs, at most ${LIMIT_MAX}. Unknown ids are ignored.`, {
          type: 'string',
          pattern: '^[1-9][0-9]{0,15}(,[1-9][0-9]{0,15})*$',
          examples: ['12,13'],
        }),
        idsFilter('id__in', 'Only these jobs.'),
        queryParameter('project_id', 'Only jobs of this project.', integerId('Id of the project.', 3)),
        idsFilter('project_id__in', 'Only jobs of these projects.'),
        queryParameter(
          'environment_id',
          'Only jobs of this environment.',
          integerId('Id of the environment.', 4),
        ),
        idsFilter('environment_id__in', 'Only jobs of these environments.'),
        STATE_FILTER,
        accountParameter(),
        orderParameter(JOB_ORDERS, 'Default: newest first.'),
        RELATED,
        ...PAGE,
      ],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'A page of jobs.', schemaRef('Job'), JOB_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'createJob',
      tags,
      summary: 'Create a job',
      description: `Project and environment are each given by id or by name; the ids must be of this account. ${REPORTERS}`,
      requestBody: requestBody('JobFields', 'The new job.', {
        name,
        project_name,
        environment_name,
        execute_steps,
      }),
      responses: operationResponses(
        'runs',
        {
          201: success(201, 'The job was created.', schemaRef('Job'), JOB_EXAMPLE),
          409: failureWithReason(
            409,
            'The account has as many jobs as it may.',
            'The account has 10000 jobs, the maximum.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v2/accounts/{account_id}/jobs/{job_id}': {
    parameters: [parameter('AccountId'), parameter('JobId')],
    get: {
      operationId: 'getJob',
      tags,
      summary: 'Get a job',
      description: 'On any plan. A deleted job is a 404.',
      parameters: [RELATED, orderParameter(JOB_ORDERS, 'No effect.')],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The job.', schemaRef('Job'), JOB_EXAMPLE) },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'updateJob',
      tags,
      summary: 'Change a job',
      description: `Replaces the fields that the body has; null stands for the default. The response of a GET changes nothing. If both the id and the name of a project (or environment) are present, the one that differs counts. ${REPORTERS}`,
      requestBody: requestBody('JobChanges', 'The fields to replace.', { execute_steps }),
      responses: operationResponses(
        'account',
        { 200: success(200, 'The changed job.', schemaRef('Job'), JOB_EXAMPLE) },
        BODY_FAILURES,
      ),
    }),
    delete: {
      operationId: 'deleteJob',
      tags,
      summary: 'Delete a job',
      description: `It is not listed any more and has no new runs; its runs keep it. The response names the webhooks that list it. ${REPORTERS}`,
      responses: operationResponses('account', {
        200: success(
          200,
          'The job was deleted.',
          schemaRef('DeletedJob'),
          { ...JOB_EXAMPLE, state: 2, webhooks: [] },
          'deleted',
        ),
      }),
    },
  },
};

const JOB_PROPERTIES: PropertiesOf<JobResponse> = {
  id: integerId('Id of the job.', 12),
  account_id: integerId('The account.', 1),
  name: text('Name of the job.'),
  project_id: integerId('Id of the project.', 3),
  project_name: text('Name of the project.'),
  environment_id: integerId('Id of the environment.', 4),
  environment_name: text('Name of the environment.'),
  ...DEFINITION_PROPERTIES,
  generate_sources: { type: 'boolean', description: 'The same as `run_generate_sources`.' },
  raw_dbt_version: { type: 'null', description: 'Always null.' },
  is_deferrable: { type: 'boolean', const: false, description: 'Always false.' },
  deactivated: { type: 'boolean', const: false, description: 'Always false.' },
  is_system: { type: 'boolean', const: false, description: 'Always false.' },
  state: { type: 'integer', enum: [1, 2], description: '2: deleted.' },
  created_at: microsecondsTime('When the job was created.'),
  updated_at: microsecondsTime('When the job was last changed.'),
};

const related = (schema: string): Schema => ({
  anyOf: [schemaRef(schema), { type: 'null' }],
  description: 'Only if `include_related` requests it.',
});

const REQUEST_PROPERTIES: Omit<PropertiesOf<JobFields>, 'state'> = {
  name: requiredName(JOB_NAME_CHARACTERS_MAX, 'Name of the job.'),
  account_id: integerId('The account of the path.', 1),
  project_id: nullable(integerId('Id of the project.', 3)),
  project_name: requiredName(
    JOB_NAME_CHARACTERS_MAX,
    'Name of the project, which is created if the account has none of that name.',
  ),
  environment_id: nullable(integerId('Id of the environment.', 4)),
  environment_name: requiredName(
    JOB_NAME_CHARACTERS_MAX,
    'Name of the environment, which is created if the account has none of that name.',
  ),
  ...DEFINITION_REQUEST_PROPERTIES,
};

/** Returns the condition that an object has at least one of the properties. */
const requireAnyOf = (properties: Partial<PropertiesOf<JobFields>>): Schema => ({
  anyOf: Object.entries(properties).map(([name, schema]) => ({
    type: 'object',
    properties: { [name]: schema },
    required: [name],
  })),
});

/** Schemas of the OpenAPI document; see docs/contract.md#jobs. */
export const jobSchemas: Record<string, Schema> = {
  Job: responseObject<JobWithRelated>(
    'A job of the account. Its runner interprets the fields about runs; Runhook starts none by them.',
    {
      ...JOB_PROPERTIES,
      project: related('Project'),
      environment: related('Environment'),
      most_recent_run: related('Run'),
      most_recent_completed_run: related('Run'),
    },
    ['project', 'environment', 'most_recent_run', 'most_recent_completed_run'],
  ),

  DeletedJob: responseObject<JobResponse & { webhooks: WebhookOfJob[] }>('A job that has been deleted.', {
    ...JOB_PROPERTIES,
    webhooks: {
      type: 'array',
      items: responseObject<WebhookOfJob>('A webhook.', {
        id: prefixedId('wsu_', 'Id of the webhook.'),
        name: text('Name of the webhook.'),
      }),
      description: 'The webhooks that list the job.',
    },
  }),

  JobFields: {
    ...requestObject<JobFields>(
      'A new job. It needs a project and an environment, each by id or by name.',
      {
        ...REQUEST_PROPERTIES,
        state: { type: 'integer', const: 1, description: '1: not deleted.' },
      },
      ['name'],
    ),
    allOf: [
      requireAnyOf({
        project_id: integerId('Id of the project.', 3),
        project_name: text('Name of the project.'),
      }),
      requireAnyOf({
        environment_id: integerId('Id of the environment.', 4),
        environment_name: text('Name of the environment.'),
      }),
    ],
  },

  JobChanges: requestObject<JobFields>(
    'Changes of a job.',
    {
      ...REQUEST_PROPERTIES,
      state: { type: 'integer', enum: [1, 2], description: '2 deletes the job.' },
    },
    [],
  ),
};
