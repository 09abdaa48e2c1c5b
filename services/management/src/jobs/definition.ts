/**
 * The fields of a job that only its runner and clients of this API family interpret (docs/contract.md#jobs): Runhook
 * stores them and starts nothing by them. The record has those that were set; the others have defaults.
 */
import { isDeepStrictEqual } from 'node:util';
import { configuredText, integerId } from '@runhook/contract';
import type { Prisma } from '@runhook/database/prisma';
import Joi from 'joi';

export const JOB_TYPES = ['ci', 'scheduled', 'other', 'merge', 'adaptive', 'exposure_sync'] as const;
export const DATE_TYPES = ['every_day', 'days_of_week', 'custom_cron', 'interval_cron'] as const;
export const TIME_TYPES = ['every_hour', 'at_exact_hours'] as const;
const COMPLETION_STATUSES = [10, 20, 30] as const;

export interface JobSchedule {
  /** Derived from `date` and `time` if a request has none. */
  cron: string;
  date: { type: (typeof DATE_TYPES)[number]; days?: number[] | null; cron?: string | null };
  time: { type: (typeof TIME_TYPES)[number]; interval?: number | null; hours?: number[] | null };
}

export interface JobDefinition {
  description: string;
  job_type: (typeof JOB_TYPES)[number];
  dbt_version: string | null;
  execute_steps: string[];
  settings: { threads: number; target_name: string };
  execution: { timeout_seconds: number };
  triggers: {
    github_webhook: boolean;
    git_provider_webhook: boolean;
    schedule: boolean;
    custom_branch_only: boolean;
    on_merge: boolean;
  };
  schedule: JobSchedule;
  generate_docs: boolean;
  run_generate_sources: boolean;
  deferring_job_definition_id: number | null;
  deferring_environment_id: number | null;
  run_compare_changes: boolean;
  compare_changes_flags: string;
  run_lint: boolean;
  errors_on_lint_failure: boolean;
  triggers_on_draft_pr: boolean;
  lifecycle_webhooks: boolean;
  force_node_selection: boolean | null;
  cost_optimization_features: string[];
  job_completion_trigger_condition: {
    condition: { job_id: number; project_id: number; statuses: (typeof COMPLETION_STATUSES)[number][] };
  } | null;
}

export type StoredDefinition = Partial<JobDefinition>;

const DEFAULTS: Omit<JobDefinition, 'job_type'> = {
  description: '',
  dbt_version: null,
  execute_steps: [],
  settings: { threads: 4, target_name: 'default' },
  execution: { timeout_seconds: 0 },
  triggers: {
    github_webhook: false,
    git_provider_webhook: false,
    schedule: false,
    custom_branch_only: false,
    on_merge: false,
  },
  schedule: { cron: '0 * * * *', date: { type: 'every_day' }, time: { type: 'every_hour', interval: 1 } },
  generate_docs: false,
  run_generate_sources: false,
  deferring_job_definition_id: null,
  deferring_environment_id: null,
  run_compare_changes: false,
  compare_changes_flags: '--select state:modified',
  run_lint: false,
  errors_on_lint_failure: true,
  triggers_on_draft_pr: false,
  lifecycle_webhooks: false,
  force_node_selection: null,
  cost_optimization_features: [],
  job_completion_trigger_condition: null,
};

/** Returns the stored fields, and the defaults of the others. @param stored column `definition` */
export function definitionOf(stored: Prisma.JsonValue): JobDefinition {
  const fields = { ...DEFAULTS, ...(stored as StoredDefinition | null) };
  return { job_type: defaultJobType(fields.triggers), ...fields };
}

function defaultJobType(triggers: JobDefinition['triggers']): JobDefinition['job_type'] {
  if (triggers.on_merge) return 'merge';
  if (triggers.github_webhook || triggers.git_provider_webhook) return 'ci';
  return triggers.schedule ? 'scheduled' : 'other';
}

/** Returns the fields of a new job; null if it has none. A field that is null has its default, which is not stored. */
export function newDefinition(fields: DefinitionChanges): StoredDefinition | null {
  const set = Object.entries(fields).filter(([, value]) => value !== null);
  return set.length === 0 ? null : Object.fromEntries(set);
}

/**
 * Replaces the fields that the changes have; null stands for the default. A field with the value that it has anyway is
 * not set, because clients send the response of a GET back with all defaults.
 * @param stored column `definition`
 */
export function mergeDefinition(
  stored: Prisma.JsonValue,
  { job_type, ...changes }: DefinitionChanges,
): StoredDefinition | null {
  const merged = newDefinition({ ...(stored as StoredDefinition | null), ...differing(stored, changes) });
  // The default of the type depends on the triggers.
  return newDefinition({ ...merged, ...differing(merged as Prisma.JsonValue, { job_type }) });
}

function differing(stored: Prisma.JsonValue, changes: Record<string, unknown>): DefinitionChanges {
  const present: Record<string, unknown> = { ...definitionOf(stored) };
  const isChange = ([field, value]: [string, unknown]) =>
    value !== undefined && !isDeepStrictEqual(value, present[field]);
  return Object.fromEntries(Object.entries(changes).filter(isChange));
}

/** Fields of a request; those that it does not have are missing. */
export type DefinitionChanges = { [Field in keyof JobDefinition]?: JobDefinition[Field] | null };

export const DEFINITION_LIMITS = {
  descriptionCharactersMax: 2_000,
  textCharactersMax: 255,
  stepsMax: 100,
  stepCharactersMax: 4_096,
  numberMax: 2 ** 31 - 1,
} as const;

const { descriptionCharactersMax, textCharactersMax, stepsMax, stepCharactersMax, numberMax } =
  DEFINITION_LIMITS;

const flag = Joi.boolean();
const text = configuredText(textCharactersMax);
const optionalText = text.allow('', null);
const integer = (min: number, max: number = numberMax) => Joi.number().integer().min(min).max(max);
/** Clients send null for a member of an object, too. */
const withDefault = (schema: Joi.Schema, value: Parameters<Joi.Schema['default']>[0]) =>
  schema.empty(null).default(value);

const schedule = Joi.object<JobSchedule>({
  cron: withDefault(text.allow(''), ''),
  date: withDefault(
    Joi.object({
      type: Joi.string()
        .valid(...DATE_TYPES)
        .required(),
      days: Joi.array().items(integer(0, 6)).max(7).allow(null),
      cron: optionalText,
    }),
    DEFAULTS.schedule.date,
  ),
  time: withDefault(
    Joi.object({
      type: Joi.string()
        .valid(...TIME_TYPES)
        .required(),
      interval: integer(0, 24).allow(null),
      hours: Joi.array().items(integer(0, 23)).max(24).allow(null),
    }),
    DEFAULTS.schedule.time,
  ),
}).custom((value: JobSchedule) => (value.cron === '' ? { ...value, cron: cronOf(value) } : value));

function cronOf({ date, time }: JobSchedule): string {
  if (date.cron) return date.cron;
  const interval = time.interval ?? 1;
  const everyHours = interval > 1 ? `*/${interval}` : '*';
  const hours = time.type === 'at_exact_hours' && time.hours?.length ? time.hours.join(',') : everyHours;
  const days = date.type === 'days_of_week' && date.days?.length ? date.days.join(',') : '*';
  return `0 ${hours} * * ${days}`;
}

const completionTrigger = Joi.object({
  condition: Joi.object({
    job_id: integerId.required(),
    project_id: integerId.required(),
    statuses: withDefault(Joi.array().items(Joi.valid(...COMPLETION_STATUSES)), [...COMPLETION_STATUSES]),
  }).required(),
});

const fields: Record<keyof JobDefinition, Joi.Schema> = {
  description: configuredText(descriptionCharactersMax).allow(''),
  job_type: Joi.string().valid(...JOB_TYPES),
  dbt_version: text,
  execute_steps: Joi.array().items(configuredText(stepCharactersMax)).max(stepsMax),
  settings: Joi.object({
    threads: withDefault(integer(1), DEFAULTS.settings.threads),
    target_name: withDefault(text.allow(''), DEFAULTS.settings.target_name),
  }),
  execution: Joi.object({ timeout_seconds: withDefault(integer(0), DEFAULTS.execution.timeout_seconds) }),
  triggers: Joi.object(
    Object.fromEntries(Object.keys(DEFAULTS.triggers).map((name) => [name, withDefault(flag, false)])),
  ),
  schedule,
  generate_docs: flag,
  run_generate_sources: flag,
  deferring_job_definition_id: integerId,
  deferring_environment_id: integerId,
  run_compare_changes: flag,
  compare_changes_flags: text.allow(''),
  run_lint: flag,
  errors_on_lint_failure: flag,
  triggers_on_draft_pr: flag,
  lifecycle_webhooks: flag,
  force_node_selection: flag,
  cost_optimization_features: Joi.array().items(text).max(20),
  job_completion_trigger_condition: completionTrigger,
};

/** Joi schemas of the fields in a request, by name; null counts as the default. */
export const DEFINITION_SCHEMAS = Object.fromEntries(
  Object.entries(fields).map(([name, schema]) => [name, schema.allow(null)]),
);

export const DEFINITION_FIELDS = Object.keys(fields) as (keyof JobDefinition)[];
