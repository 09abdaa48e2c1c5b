import type { JobView } from '@runhook/database';
import {
  integerId,
  type Paths,
  requestObject,
  requiredName,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  orderParameter,
  PAGE,
  parameter,
  queryParameter,
  requestBody,
  searchParameter,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { JOB_NAME_CHARACTERS_MAX, JOB_ORDERS, type JobFields, type JobResponse } from './routes.ts';

const tags = ['Jobs and runs'];

const JOB_EXAMPLE: JobView = {
  id: 12,
  account_id: 1,
  name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
};

const { name, project_name, environment_name } = JOB_EXAMPLE;

const RELATED = queryParameter(
  'include_related',
  'Related objects to include: `project`, `environment` or both, separated by commas, with or without brackets. Other names are ignored.',
  { type: 'string', examples: ['[environment]'] },
);

/** Paths of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
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
        queryParameter('ids', `Only these jobs, at most ${LIMIT_MAX}. Unknown ids are ignored.`, {
          type: 'string',
          pattern: '^[1-9][0-9]{0,15}(,[1-9][0-9]{0,15})*$',
          examples: ['12,13'],
        }),
        queryParameter('project_id', 'Only jobs of this project.', integerId('Id of the project.', 3)),
        queryParameter(
          'environment_id',
          'Only jobs of this environment.',
          integerId('Id of the environment.', 4),
        ),
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
      description:
        'Requires one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.',
      requestBody: requestBody('JobFields', 'The new job.', { name, project_name, environment_name }),
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
      description: 'On any plan.',
      parameters: [RELATED],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'The job.', schemaRef('Job'), JOB_EXAMPLE) },
        [400],
      ),
    },
  },
};

/** Schemas of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
export const jobSchemas: Record<string, Schema> = {
  Job: responseObject<JobResponse>(
    'A job of the account, with its project and environment.',
    {
      id: integerId('Id of the job.', 12),
      account_id: integerId('The account.', 1),
      name: text('Name of the job.'),
      project_id: integerId('Id of the project.', 3),
      project_name: text('Name of the project.'),
      environment_id: integerId('Id of the environment.', 4),
      environment_name: text('Name of the environment.'),
      project: schemaRef('Project', 'Only if `include_related` requests it.'),
      environment: schemaRef('Environment', 'Only if `include_related` requests it.'),
    },
    ['project', 'environment'],
  ),

  JobFields: requestObject<JobFields>(
    'A new job. Its project and environment are created if the account has none of that name.',
    {
      name: requiredName(JOB_NAME_CHARACTERS_MAX, 'Name of the job.'),
      project_name: requiredName(JOB_NAME_CHARACTERS_MAX, 'Name of the project.'),
      environment_name: requiredName(JOB_NAME_CHARACTERS_MAX, 'Name of the environment.'),
    },
    ['name', 'project_name', 'environment_name'],
  ),
};
