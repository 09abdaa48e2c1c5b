import { LIMIT_MAX } from '../../query-parameters.ts';
import { JOB_EXAMPLE } from '../examples.ts';
import { keyed } from '../keyed.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Paths } from '../openapi-types.ts';
import { inQuery, PAGE, parameter, searchParameter } from '../parameters.ts';
import { requestBody } from '../request-body.ts';
import { answers, OF_A_BODY, success } from '../responses.ts';

const tags = ['Jobs and runs'];

const { name, project_name, environment_name } = JOB_EXAMPLE;

/** DESIGN, section 4, "Runs API". */
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
