import { RUN_STATUS_CODES } from '@runhook/contract';
import { RUN_LIMITS, type RunFinish, type RunStart } from '../../../domain/run-requests.ts';
import { FINISH_STATUSES } from '../../../domain/run-transitions.ts';
import type { RunView } from '../../../domain/run-view.ts';
import { integerId, optionalText, orNull, requiredText, secondsTime, text } from '../field-schemas.ts';
import { answerObject, requestObject } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';

const CODES = Object.entries(RUN_STATUS_CODES);

export const RUN_STATUS: Schema = {
  type: 'string',
  enum: CODES.map(([status]) => status),
  description: 'Where the run is in its life.',
};

/** Of a request: a finer fraction is taken and cut, so only the shape is the same as in answers. */
function reportedTime(description: string): Schema {
  return {
    type: ['string', 'null'],
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|\\+00:00)$',
    description: `${description} ISO 8601 UTC; a fraction of a second is cut. Null or left out: the time of the call.`,
    examples: ['2026-11-20T10:00:00Z'],
  };
}

/** DESIGN, sections 4 ("Runs API") and 7 ("Runs"). */
export const runSchemas: Record<string, Schema> = {
  Run: answerObject<RunView>('A run of a job. Names are those of the time when it started.', {
    id: integerId('Id of the run, unique in its account.', 345),
    account_id: integerId('The account.', 1),
    job_id: integerId('The job.', 12),
    job_name: text('Name of the job.'),
    project_id: integerId('Id of the project.', 3),
    project_name: text('Name of the project.'),
    environment_id: integerId('Id of the environment.', 4),
    environment_name: text('Name of the environment.'),
    engine_version: text('Version of the engine that runs the job.'),
    status: RUN_STATUS,
    status_code: {
      type: 'integer',
      enum: CODES.map(([, code]) => code),
      description: `The status as a number: ${CODES.map(([status, code]) => `${status} ${code}`).join(', ')}.`,
    },
    status_message: {
      type: ['string', 'null'],
      description: 'What the job runner said at the end, if anything.',
    },
    reason: { type: ['string', 'null'], description: 'How the run came to be started, if that was told.' },
    started_at: secondsTime('When it started.'),
    finished_at: orNull(secondsTime('When it ended, however; null while it is running.')),
    errored_at: orNull(secondsTime('When it failed; null when it did not.')),
    artifacts_ingested_at: orNull(secondsTime('When its artifacts were reported as ingested; null before.')),
  }),

  RunStart: requestObject<RunStart>(
    'A run that has started.',
    {
      job_id: integerId('The job, which must be one of the account.', 12),
      run_id: orNull(
        integerId('The job runner’s own number for the run. Null or left out: the service numbers it.', 345),
      ),
      reason: optionalText(RUN_LIMITS.messageCharactersMax, 'How the run came to be started, in free text.'),
      engine_version: requiredText(
        RUN_LIMITS.engineVersionCharactersMax,
        'Version of the engine that runs the job.',
      ),
      started_at: reportedTime('When it started.'),
    },
    ['job_id', 'engine_version'],
  ),

  RunFinish: requestObject<RunFinish>(
    'How a run ended.',
    {
      status: { type: 'string', enum: FINISH_STATUSES, description: 'How it ended.' },
      status_message: optionalText(RUN_LIMITS.messageCharactersMax, 'What there is to say about it.'),
      finished_at: reportedTime('When it ended.'),
    },
    ['status'],
  ),
};
