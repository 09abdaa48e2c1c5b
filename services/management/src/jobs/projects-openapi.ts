import {
  integerId,
  type Operation,
  type PathItem,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  searchParameter,
} from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { type EnvironmentView, LIST_ORDERS, type ProjectView } from './projects.ts';

const tags = ['Jobs and runs'];

const PROJECT_EXAMPLE: ProjectView = {
  id: 3,
  account_id: 1,
  name: 'Analytics',
  description: '',
  state: 1,
  created_at: '2026-01-15T08:00:00Z',
  updated_at: '2026-01-15T08:00:00Z',
};

const ENVIRONMENT_EXAMPLE: EnvironmentView = {
  id: 4,
  account_id: 1,
  project_id: 3,
  name: 'Production',
  type: 'deployment',
  state: 1,
  created_at: '2026-01-15T08:00:00Z',
  updated_at: '2026-01-15T08:00:00Z',
};

const LIST_PARAMETERS = [
  searchParameter('in their name'),
  queryParameter('name__icontains', 'The same as `search`.', { type: 'string', maxLength: 255 }),
  orderParameter(LIST_ORDERS, 'Default: newest first.'),
];

type Resource = 'project' | 'environment';

const KIND = {
  project: { plural: 'projects', schema: 'Project', example: PROJECT_EXAMPLE },
  environment: { plural: 'environments', schema: 'Environment', example: ENVIRONMENT_EXAMPLE },
};

function listOperation(
  resource: Resource,
  operationId: string,
  extraParameters: Operation['parameters'] = [],
): Operation {
  const { plural, schema, example } = KIND[resource];
  return {
    operationId,
    tags,
    summary: `List the ${plural} of an account`,
    description: `The ${plural} that jobs of the account name; each is created with the first such job.`,
    parameters: [...extraParameters, ...LIST_PARAMETERS, ...PAGE],
    responses: operationResponses(
      'runs',
      { 200: success(200, `A page of ${plural}.`, schemaRef(schema), example, 'list') },
      [400],
    ),
  };
}

function getOperation(resource: Resource, operationId: string): Operation {
  const { schema, example } = KIND[resource];
  return {
    operationId,
    tags,
    summary: `Get one ${resource}`,
    description: 'It must belong to a job of the account.',
    responses: operationResponses('runs', {
      200: success(200, `The ${resource}.`, schemaRef(schema), example),
    }),
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

/** Paths of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
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
};

const STATE: Schema = { type: 'integer', const: 1, description: '1: not deleted.' };
const CREATED = secondsTime('When its oldest job was created.');
const UPDATED = secondsTime('Equals `created_at`, because it does not change.');

/** Schemas of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
export const projectSchemas: Record<string, Schema> = {
  Project: responseObject<ProjectView>('A project of jobs of the account.', {
    id: integerId('Id of the project.', 3),
    account_id: integerId('The account.', 1),
    name: text('Name of the project.'),
    description: text('Always empty.'),
    state: STATE,
    created_at: CREATED,
    updated_at: UPDATED,
  }),

  Environment: responseObject<EnvironmentView>(
    'An environment of jobs of the account. Jobs of several projects may share it.',
    {
      id: integerId('Id of the environment.', 4),
      account_id: integerId('The account.', 1),
      project_id: integerId('The requested project; otherwise that of its oldest job.', 3),
      name: text('Name of the environment.'),
      type: { type: 'string', const: 'deployment', description: 'Jobs that run in it.' },
      state: STATE,
      created_at: CREATED,
      updated_at: UPDATED,
    },
  ),
};
