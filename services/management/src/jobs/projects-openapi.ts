import {
  integerId,
  microsecondsTime,
  type Operation,
  type PathItem,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  accountParameter,
  listParameter,
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  relatedParameter,
  searchParameter,
} from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { idsFilter, NAME_FILTERS, STATE_FILTER } from './list-openapi.ts';
import {
  ENVIRONMENT_VERSION,
  type EnvironmentView,
  environmentView,
  type ProjectView,
  projectView,
} from './project-response.ts';
import { ENVIRONMENT_RELATED, LIST_ORDERS, PROJECT_RELATED } from './projects.ts';

const tags = ['Jobs and runs'];

const FIRST_JOB = { projectId: 3n, createdAt: new Date('2026-01-15T08:00:00Z') };
const PROJECT_EXAMPLE = projectView(1, { id: 3n, name: 'Analytics' }, FIRST_JOB);
const ENVIRONMENT_EXAMPLE = environmentView(1, { id: 4n, name: 'Production' }, FIRST_JOB);

const LIST_PARAMETERS = [
  searchParameter('in their name'),
  ...NAME_FILTERS,
  idsFilter('id__in', 'Only those with these ids.'),
  idsFilter('pk__in', 'The same as `id__in`.'),
  STATE_FILTER,
  accountParameter(),
  orderParameter(LIST_ORDERS, 'Default: newest first.'),
];

type Resource = 'project' | 'environment';

const KIND = {
  project: {
    plural: 'projects',
    schema: 'Project',
    example: PROJECT_EXAMPLE,
    related: relatedParameter(PROJECT_RELATED),
    filters: [],
  },
  environment: {
    plural: 'environments',
    schema: 'Environment',
    example: ENVIRONMENT_EXAMPLE,
    related: relatedParameter(ENVIRONMENT_RELATED),
    filters: [
      queryParameter('type', 'Only environments of this type.', { type: 'string', maxLength: 255 }),
      queryParameter('dbt_version', 'Only environments with this version.', {
        type: 'string',
        maxLength: 255,
      }),
      listParameter('dbt_version__in', 'Only environments with one of these versions.', '["1.9.0"]'),
      listParameter(
        'deployment_type__in',
        'Only environments of these types: there are none.',
        '["production"]',
      ),
      queryParameter(
        'credentials_id',
        'Excludes all environments: they have no credentials.',
        integerId('Id of the credentials.', 1),
      ),
      idsFilter('project_id__in', 'Only environments of jobs of these projects.'),
    ],
  },
};

function listOperation(
  resource: Resource,
  operationId: string,
  extraParameters: Operation['parameters'] = [],
): Operation {
  const { plural, schema, example, related, filters } = KIND[resource];
  return {
    operationId,
    tags,
    summary: `List the ${plural} of an account`,
    description: `The ${plural} that jobs of the account name; each is created with the first such job.`,
    parameters: [...extraParameters, ...LIST_PARAMETERS, ...filters, related, ...PAGE],
    responses: operationResponses(
      'runs',
      { 200: success(200, `A page of ${plural}.`, schemaRef(schema), example, 'list') },
      [400],
    ),
  };
}

function getOperation(resource: Resource, operationId: string): Operation {
  const { schema, example, related } = KIND[resource];
  return {
    operationId,
    tags,
    summary: `Get one ${resource}`,
    description: 'It must belong to a job of the account.',
    parameters: [related],
    responses: operationResponses(
      'runs',
      { 200: success(200, `The ${resource}.`, schemaRef(schema), example) },
      [400],
    ),
  };
}

const PROJECT_FILTER = [
  queryParameter(
    'project_id',
    'Only environments of jobs of this project.',
    integerId('Id of the project.', 3),
  ),
];

/** @param suffix of the operation ids, because both versions of the API have these operations */
function createPaths(version: 'v2' | 'v3', suffix: '' | 'V2'): Record<`/api/${string}`, PathItem> {
  const account = `/api/${version}/accounts/{account_id}` as const;
  const parameters = [parameter('AccountId')];
  return {
    [`${account}/projects`]: { parameters, get: listOperation('project', `listProjects${suffix}`) },
    [`${account}/projects/{project_id}`]: {
      parameters: [...parameters, parameter('ProjectId')],
      get: getOperation('project', `getProject${suffix}`),
    },
    [`${account}/environments`]: {
      parameters,
      get: listOperation('environment', `listEnvironments${suffix}`, PROJECT_FILTER),
    },
    [`${account}/environments/{environment_id}`]: {
      parameters: [...parameters, parameter('EnvironmentId')],
      get: getOperation('environment', `getEnvironment${suffix}`),
    },
  };
}

/** Paths of the OpenAPI document; see docs/contract.md#projects-and-environments. */
export const projectPaths: Paths = {
  ...createPaths('v2', 'V2'),
  ...createPaths('v3', ''),
  '/api/v3/accounts/{account_id}/projects/{project_id}/environments': {
    parameters: [parameter('AccountId'), parameter('ProjectId')],
    get: listOperation('environment', 'listEnvironmentsOfProject'),
  },
  '/api/v3/accounts/{account_id}/projects/{project_id}/environments/{environment_id}': {
    parameters: [parameter('AccountId'), parameter('ProjectId'), parameter('EnvironmentId')],
    get: getOperation('environment', 'getEnvironmentOfProject'),
  },
  '/api/v3/accounts/{account_id}/projects/{project_id}/environment-variables/job': {
    parameters: [parameter('AccountId'), parameter('ProjectId')],
    get: {
      operationId: 'listJobVariables',
      tags,
      summary: 'List the environment variables of a job',
      description:
        'Always empty, because a job runner has its own. For clients that ask before they use a job.',
      parameters: [
        queryParameter('job_definition_id', 'The job.', integerId('Id of the job.', 12)),
        accountParameter(),
      ],
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'No variables.', responseObject('The variables by name.', {}), {}),
        },
        [400],
      ),
    },
  },
};

const STATE: Schema = { type: 'integer', const: 1, description: '1: not deleted.' };
const CREATED = microsecondsTime('When its oldest job was created.');
const UPDATED = microsecondsTime('Equals `created_at`, because it does not change.');
const NULL: Schema = { type: 'null', description: 'Always null.' };
const FALSE: Schema = { type: 'boolean', const: false, description: 'Always false.' };

/** Schemas of the OpenAPI document; see docs/contract.md#projects-and-environments. */
export const projectSchemas: Record<string, Schema> = {
  Project: responseObject<ProjectView>(
    'A project of jobs of the account.',
    {
      id: integerId('Id of the project.', 3),
      account_id: integerId('The account.', 1),
      name: text('Name of the project.'),
      description: text('Always empty.'),
      state: STATE,
      connection: NULL,
      connection_id: NULL,
      repository: NULL,
      repository_id: NULL,
      dbt_project_subdirectory: NULL,
      docs_job_id: NULL,
      freshness_job_id: NULL,
      created_at: CREATED,
      updated_at: UPDATED,
      environments: {
        type: 'array',
        items: schemaRef('Environment'),
        description: 'Only if `include_related` requests it.',
      },
    },
    ['environments'],
  ),

  Environment: responseObject<EnvironmentView>(
    'An environment of jobs of the account. Jobs of several projects may share it.',
    {
      id: integerId('Id of the environment.', 4),
      account_id: integerId('The account.', 1),
      project_id: integerId('The requested project; otherwise that of its oldest job.', 3),
      name: text('Name of the environment.'),
      type: { type: 'string', const: 'deployment', description: 'Jobs that run in it.' },
      deployment_type: NULL,
      state: STATE,
      dbt_version: {
        type: 'string',
        const: ENVIRONMENT_VERSION,
        description: 'The version of the engine, which the job runner chooses.',
      },
      use_custom_branch: FALSE,
      custom_branch: NULL,
      supports_docs: FALSE,
      connection_id: NULL,
      credentials_id: NULL,
      created_at: CREATED,
      updated_at: UPDATED,
      project: {
        anyOf: [schemaRef('Project'), { type: 'null' }],
        description: 'Only if `include_related` requests it.',
      },
    },
    ['project'],
  ),
};
