import { RUN_STATUSES, STORED_RUN_STATUSES } from '@runhook/contract';
import {
  durationOf,
  integerId,
  microsecondsTime,
  nullable,
  optionalReportedText,
  requestObject,
  requiredReportedText,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import type { RunFinish, RunStart } from './routes.ts';
import { RUN_LIMITS } from './routes.ts';
import { type RunResponse, runResponse, type TriggerResponse } from './run-response.ts';
import type { RunView } from './run-view.ts';
import { statusNumber } from './status-openapi.ts';
import { reportedSteps, reportedTime } from './step-openapi.ts';
import { FINISH_STATUSES } from './transitions.ts';

export const RUNNING: RunView = {
  id: 345,
  account_id: 1,
  job_id: 12,
  job_name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
  engine_version: '1.9.0',
  status: 'Running',
  status_message: null,
  reason: 'Scheduled',
  created_at: '2026-11-20T09:58:26.250000Z',
  started_at: '2026-11-20T09:58:26.250000Z',
  finished_at: null,
  errored_at: null,
  artifacts_ingested_at: null,
  trigger: null,
  retry_of: null,
};

export const ERRORED: RunView = {
  ...RUNNING,
  status: 'Errored',
  status_message: 'Two models failed',
  finished_at: '2026-11-20T10:00:00.750000Z',
  errored_at: '2026-11-20T10:00:00.750000Z',
};

const EXAMPLE_OPTIONS = { baseUrl: 'https://runhook.example.com', nowMs: Date.parse('2026-11-20T09:58:27Z') };

export const RUNNING_EXAMPLE: RunResponse = runResponse(RUNNING, EXAMPLE_OPTIONS);
export const CANCELLED_EXAMPLE = runResponse(
  { ...RUNNING, status: 'Canceled', finished_at: ERRORED.finished_at },
  EXAMPLE_OPTIONS,
);
export const ERRORED_EXAMPLE = runResponse(ERRORED, EXAMPLE_OPTIONS);
export const INGESTED_EXAMPLE = runResponse(
  { ...ERRORED, artifacts_ingested_at: '2026-11-20T10:00:05.125000Z' },
  EXAMPLE_OPTIONS,
);

const flag = (description: string): Schema => ({ type: 'boolean', description });

/** Schema of a time in a report that is the time of the call by default. */
export function timeOfCallByDefault(description: string): Schema {
  const schema = reportedTime(description);
  return { ...schema, description: `${schema.description} Default (also null): the time of the call.` };
}

/** An option of a trigger; null where it is not set. */
const option = (type: 'boolean' | 'integer' | 'string', description: string): Schema => ({
  type: [type, 'null'],
  description,
});

const TRIGGER: Schema = responseObject<TriggerResponse>(
  'Why and with which options it was started. An option that is not set is null.',
  {
    id: integerId('The number of the run.', 345),
    job_id: integerId('The job.', 12),
    job_definition_id: integerId('The job.', 12),
    cause: text('Why it was started: `cause` of the trigger, or `reason` of the report. May be empty.'),
    cause_category: {
      type: 'string',
      enum: ['api', 'other'],
      description: '`api`: triggered by a call; `other`: reported by its runner.',
    },
    created_at: microsecondsTime('When the run was recorded.'),
    git_branch: option('string', 'Branch.'),
    git_sha: option('string', 'Commit.'),
    azure_pull_request_id: option('integer', 'Pull request.'),
    github_pull_request_id: option('integer', 'Pull request.'),
    gitlab_merge_request_id: option('integer', 'Merge request.'),
    schema_override: option('string', 'Schema instead of that of the job.'),
    dbt_version_override: option('string', 'Version of the engine.'),
    threads_override: option('integer', 'Number of threads.'),
    target_name_override: option('string', 'Target.'),
    generate_docs_override: option('boolean', 'Whether documentation is generated.'),
    timeout_seconds_override: option('integer', 'Timeout in seconds.'),
    steps_override: {
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'Commands instead of those of the job.',
    },
  },
);

/** Schemas of the OpenAPI document; see docs/contract.md#runs-and-jobs. */
export const runSchemas: Record<string, Schema> = {
  Run: responseObject<RunResponse>(
    'A run of a job. Names are those at its start.',
    {
      id: integerId('Id of the run, unique in its account.', 345),
      account_id: integerId('The account.', 1),
      job_id: integerId('The job.', 12),
      job_definition_id: integerId('The job, under the name that other clients use.', 12),
      job_name: text('Name of the job.'),
      project_id: integerId('Id of the project.', 3),
      project_name: text('Name of the project.'),
      environment_id: integerId('Id of the environment.', 4),
      environment_name: text('Name of the environment.'),
      engine_version: nullable(text('Version of the engine that runs the job; null until it starts.')),
      dbt_version: nullable(text('The same as `engine_version`.')),
      status: statusNumber('The status:'),
      status_code: statusNumber('The same as `status`:'),
      status_humanized: {
        type: 'string',
        enum: STORED_RUN_STATUSES.map((word) => RUN_STATUSES[word].humanized),
        description: 'The status as a word.',
      },
      status_message: {
        type: ['string', 'null'],
        description: 'The message of the job runner about the end; null without one.',
      },
      is_success: flag('Whether it succeeded.'),
      is_error: flag('Whether it failed.'),
      is_cancelled: flag('Whether it was cancelled.'),
      is_complete: flag('Whether it has ended.'),
      is_running: flag('Whether it has started and not ended.'),
      in_progress: flag('Whether it has not ended.'),
      reason: { type: ['string', 'null'], description: 'Why the run was started; null if not reported.' },
      git_sha: { type: ['string', 'null'], description: 'The same as that of `trigger`.' },
      git_branch: { type: ['string', 'null'], description: 'The same as that of `trigger`.' },
      created_at: microsecondsTime('When it was recorded.'),
      updated_at: microsecondsTime('The latest of its other times.'),
      should_start_at: microsecondsTime('Equals `created_at`.'),
      dequeued_at: nullable(microsecondsTime('Equals `started_at`.')),
      started_at: nullable(microsecondsTime('When it started; null before.')),
      finished_at: nullable(
        microsecondsTime(
          'When it ended, whatever its status; null before, and while only its error was published.',
        ),
      ),
      errored_at: nullable(microsecondsTime('When it failed; null if it did not.')),
      artifacts_ingested_at: nullable(
        microsecondsTime('When its artifacts were reported as ingested; null before.'),
      ),
      artifacts_saved: flag('Whether its artifacts were reported as ingested.'),
      has_docs_generated: flag('The same as `artifacts_saved`.'),
      has_sources_generated: flag('Always false.'),
      duration: durationOf('From its record or start to its end, or to now.'),
      duration_humanized: text('`duration` in words.'),
      queued_duration: durationOf('Of this, the time before its start.'),
      queued_duration_humanized: text('`queued_duration` in words.'),
      run_duration: durationOf('Of this, the time from its start on.'),
      run_duration_humanized: text('`run_duration` in words.'),
      href: { type: 'string', format: 'uri', description: 'The page of the run in the console.' },
      trigger_id: integerId('Id of `trigger`.', 345),
      trigger: TRIGGER,
      retry_of: nullable(integerId('The run that this run repeats; null for none.', 344)),
      deferring_run_id: { type: 'null', description: 'Always null.' },
      job: schemaRef('Job', 'Only if requested. Of an unknown job: what the run reports.'),
      environment: {
        anyOf: [schemaRef('Environment'), { type: 'null' }],
        description: 'Only if requested; null if it does not exist.',
      },
      repository: { type: 'null', description: 'Only if requested.' },
      run_steps: {
        type: 'array',
        items: schemaRef('RunStep'),
        description:
          'The steps. In lists only if requested, and in no response to a POST; their texts only if requested.',
      },
    },
    ['job', 'environment', 'repository', 'run_steps'],
  ),

  RunStart: requestObject<RunStart>(
    'The start of a run.',
    {
      job_id: integerId('The job, which must belong to the account.', 12),
      run_id: nullable(
        integerId('The job runner’s own number of the run. Default (also null): a generated number.', 345),
      ),
      reason: optionalReportedText(RUN_LIMITS.messageCharactersMax, 'Why the run was started, in free text.'),
      engine_version: requiredReportedText(
        RUN_LIMITS.engineVersionCharactersMax,
        'Version of the engine that runs the job.',
      ),
      started_at: timeOfCallByDefault('When it started.'),
    },
    ['job_id', 'engine_version'],
  ),

  RunFinish: requestObject<RunFinish>(
    'The end of a run.',
    {
      status: { type: 'string', enum: FINISH_STATUSES, description: 'The final status.' },
      status_message: optionalReportedText(RUN_LIMITS.messageCharactersMax, 'A message about the status.'),
      finished_at: timeOfCallByDefault('When it ended.'),
      run_steps: reportedSteps('Steps of the run, committed with its end; also with a repeat.', true),
    },
    ['status'],
  ),
};
