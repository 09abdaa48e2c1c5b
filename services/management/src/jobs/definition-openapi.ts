import {
  integerId,
  nullable,
  optionalText,
  type PropertiesOf,
  requiredText,
  responseObject,
  type Schema,
} from '../http/openapi/field-schemas.ts';
import {
  DATE_TYPES,
  DEFINITION_LIMITS,
  JOB_TYPES,
  type JobDefinition,
  type JobSchedule,
  TIME_TYPES,
} from './definition.ts';

const { descriptionCharactersMax, textCharactersMax, stepsMax, stepCharactersMax, numberMax } =
  DEFINITION_LIMITS;

const flag = (description: string): Schema => ({ type: 'boolean', description });
const number = (description: string, minimum: number, maximum: number = numberMax): Schema => ({
  type: 'integer',
  minimum,
  maximum,
  description,
});
/** A text that may be empty. */
const anyText = (maxLength: number, description: string): Schema => ({
  ...optionalText(maxLength, description),
  type: 'string',
});
const numbers = (description: string, maximum: number, maxItems: number): Schema => ({
  type: ['array', 'null'],
  items: { type: 'integer', minimum: 0, maximum },
  maxItems,
  description,
});
const oneOf = (values: readonly string[], description: string): Schema => ({
  type: 'string',
  enum: values,
  description,
});

const TRIGGERS: PropertiesOf<JobDefinition['triggers']> = {
  github_webhook: flag('For runners that start runs of pull requests at GitHub.'),
  git_provider_webhook: flag('For runners that start runs of pull requests at another Git provider.'),
  schedule: flag('For runners that start runs by `schedule`.'),
  custom_branch_only: flag('For runners that start runs of the branch of the environment only.'),
  on_merge: flag('For runners that start a run when a pull request is merged.'),
};

const SCHEDULE = responseObject<JobSchedule>('When a runner starts runs, if `triggers.schedule` is true.', {
  cron: anyText(textCharactersMax, 'Cron expression; derived from `date` and `time` if omitted or empty.'),
  date: responseObject<JobSchedule['date']>(
    'The days.',
    {
      type: oneOf(DATE_TYPES, 'How the days are selected.'),
      days: numbers('Days of the week, 0 is Sunday.', 6, 7),
      cron: optionalText(textCharactersMax, 'Cron expression.'),
    },
    ['days', 'cron'],
  ),
  time: responseObject<JobSchedule['time']>(
    'The times of a day.',
    {
      type: oneOf(TIME_TYPES, 'How the times are selected.'),
      interval: nullable(number('Hours between two runs.', 0, 24)),
      hours: numbers('Hours of the day in UTC.', 23, 24),
    },
    ['interval', 'hours'],
  ),
});

const CONDITION = responseObject<NonNullable<JobDefinition['job_completion_trigger_condition']>>(
  'The end of runs of another job after which a runner starts a run.',
  {
    condition: responseObject('The runs.', {
      job_id: integerId('The other job.', 13),
      project_id: integerId('Its project.', 3),
      statuses: {
        type: 'array',
        items: { type: 'integer', enum: [10, 20, 30] },
        description: 'Statuses of the runs.',
      },
    }),
  },
);

/** Properties of a job that its runner and clients interpret, in responses. */
export const DEFINITION_PROPERTIES: PropertiesOf<JobDefinition> = {
  description: anyText(descriptionCharactersMax, 'Description of the job.'),
  job_type: oneOf(JOB_TYPES, 'Type of the job; default: by its triggers.'),
  dbt_version: nullable(
    requiredText(textCharactersMax, 'Version of the engine; null: that of the environment.'),
  ),
  execute_steps: {
    type: 'array',
    items: requiredText(stepCharactersMax, 'A command.'),
    maxItems: stepsMax,
    description: 'Commands of a run, in order.',
  },
  settings: responseObject<JobDefinition['settings']>('Settings of the engine.', {
    threads: number('Number of threads.', 1),
    target_name: anyText(textCharactersMax, 'Name of the target.'),
  }),
  execution: responseObject<JobDefinition['execution']>('Limits of a run.', {
    timeout_seconds: number('Time after which a runner ends the run; 0: none.', 0),
  }),
  triggers: responseObject<JobDefinition['triggers']>(
    'What starts runs; Runhook itself starts none.',
    TRIGGERS,
  ),
  schedule: SCHEDULE,
  generate_docs: flag('Whether a run generates the documentation.'),
  run_generate_sources: flag('Whether a run checks the freshness of sources.'),
  deferring_job_definition_id: nullable(integerId('Job to whose artifacts runs defer.', 13)),
  deferring_environment_id: nullable(integerId('Environment to whose artifacts runs defer.', 4)),
  run_compare_changes: flag('Whether a run compares changes.'),
  compare_changes_flags: anyText(textCharactersMax, 'Options of the comparison.'),
  run_lint: flag('Whether a run checks the style of SQL.'),
  errors_on_lint_failure: flag('Whether a run errors if this check fails.'),
  triggers_on_draft_pr: flag('Whether draft pull requests count as pull requests.'),
  lifecycle_webhooks: flag('Stored for clients, without effect.'),
  force_node_selection: nullable(flag('Stored for clients, without effect.')),
  cost_optimization_features: {
    type: 'array',
    items: requiredText(textCharactersMax, 'Name of a feature.'),
    maxItems: 20,
    description: 'Stored for clients, without effect.',
  },
  job_completion_trigger_condition: nullable(CONDITION),
};

/** Members of objects that have no default. */
const REQUIRED_MEMBERS = ['type', 'condition', 'job_id', 'project_id'];

/** Returns the property as a request may have it: null counts as the default, members with a default may be missing. */
function inRequest(schema: Schema): Schema {
  if (schema.enum !== undefined)
    return { anyOf: [schema, { type: 'null' }], description: schema.description ?? '' };
  const type = [...new Set([schema.type ?? [], 'null' as const].flat())];
  return { ...withRequestMembers(schema), type };
}

function withRequestMembers(schema: Schema): Schema {
  const { additionalProperties: _, required: __, properties, ...rest } = schema;
  if (properties === undefined) return rest;
  const names = Object.keys(properties);
  const required = names.filter((name) => REQUIRED_MEMBERS.includes(name));
  return {
    ...rest,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [
        name,
        required.includes(name) ? withRequestMembers(one) : inRequest(one),
      ]),
    ),
    ...(required.length > 0 && { required }),
  };
}

/** The same properties in requests. */
export const DEFINITION_REQUEST_PROPERTIES = Object.fromEntries(
  Object.entries(DEFINITION_PROPERTIES).map(([name, schema]) => [name, inRequest(schema)]),
) as PropertiesOf<JobDefinition>;
