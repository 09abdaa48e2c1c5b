import type { JobView } from '@runhook/database';
import { JOB_NAME_CHARACTERS_MAX, type JobFields } from '../../../domain/jobs-request.ts';
import { integerId, requiredText, text } from '../field-schemas.ts';
import { answerObject, requestObject } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';

/** DESIGN, sections 4 ("Runs API") and 7 ("Runs"). */
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
