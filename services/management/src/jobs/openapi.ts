import type { JobView } from '@runhook/database';
import {
  answerObject,
  integerId,
  type Paths,
  requestObject,
  requiredText,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { inQuery, keyed, PAGE, parameter, requestBody, searchParameter } from '../http/openapi/parameters.ts';
import { answers, OF_A_BODY, success } from '../http/openapi/responses.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { JOB_NAME_CHARACTERS_MAX, type JobFields } from './routes.ts';

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

/** See docs/contract.md#runs-and-jobs. */
export const jobPaths: Paths = {
  '/api/v2/accounts/{account_id}/jobs/': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listJobs',
      tags,
      summary: 'List the jobs of an account',
      description: 'Newest first.',
      parameters: [
        searchParameter('in their name, or whose id begins with it'),
        inQuery('ids', `Only these, at most ${LIMIT_MAX}. One that the account does not have is left out.`, {
          type: 'string',
          pattern: '^[1-9][0-9]{0,15}(,[1-9][0-9]{0,15})*$',
          examples: ['12,13'],
        }),
        ...PAGE,
      ],
      responses: answers(
        'runs',
        { 200: success(200, 'A page of them.', schemaRef('Job'), JOB_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: keyed({
      operationId: 'createJob',
      tags,
      summary: 'Create a job',
      description: 'Needs one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.',
      requestBody: requestBody('JobFields', 'The new job.', { name, project_name, environment_name }),
      responses: answers(
        'runs',
        { 201: success(201, 'It exists.', schemaRef('Job'), JOB_EXAMPLE) },
        OF_A_BODY,
      ),
    }),
  },
};

/** See docs/contract.md#runs-and-jobs. */
export const jobSchemas: Record<string, Schema> = {
  Job: answerObject<JobView>('A job of the account, with the project and environment it belongs to.', {
    id: integerId('Id of the job.', 12),
    account_id: integerId('The account.', 1),
    name: text('Name of the job.'),
    project_id: integerId('Id of the project.', 3),
    project_name: text('Name of the project.'),
    environment_id: integerId('Id of the environment.', 4),
    environment_name: text('Name of the environment.'),
  }),

  JobFields: requestObject<JobFields>(
    'A new job. The project and the environment are made when the account has none of that name.',
    {
      name: requiredText(JOB_NAME_CHARACTERS_MAX, 'Name of the job.'),
      project_name: requiredText(JOB_NAME_CHARACTERS_MAX, 'Name of the project.'),
      environment_name: requiredText(JOB_NAME_CHARACTERS_MAX, 'Name of the environment.'),
    },
    ['name', 'project_name', 'environment_name'],
  ),
};
