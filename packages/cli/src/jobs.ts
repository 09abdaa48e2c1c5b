import type { Schemas } from '@runhook/client';
import { table } from '@runhook/runtime/terminal-text';
import { type Command, type CommandGroup, option, parsers, repeatable, UsageError } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions } from './connection.ts';
import { isId, JOB_ARGUMENT, JOB_PATH, JOBS_PATH, jobId, notFound } from './references.ts';
import { runJob } from './run-actions.ts';
import { limitOption, takeRows } from './webhooks.ts';

type Job = Schemas['Job'];

interface ListOptions extends ConnectionOptions {
  search?: string;
  project?: number;
  environment?: number;
  limit: number;
}

const list: Command<ListOptions> = {
  name: 'list',
  summary: 'list the jobs of the account',
  description: 'Lists jobs, newest first.',
  options: [
    option('--search <text>', 'text in the name, or the beginning of the number'),
    option('--project <id>', 'only jobs of this project', parsers.id),
    option('--environment <id>', 'only jobs of this environment', parsers.id),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['jobs list --search nightly'],
  async run(context, { search = '', project, environment, limit, ...connection }) {
    const client = await connect(context.env, connection);
    const query = {
      search,
      project_id: project ?? '',
      environment_id: environment ?? '',
      limit: Math.min(limit, 100),
    } as const;
    const rows = await takeRows(client.list(JOBS_PATH, { query }), limit);
    const cells = rows.map((row) => [
      String(row.id),
      row.name,
      row.project_name,
      row.environment_name,
      row.execute_steps.join('; '),
    ]);
    await context.writeResult(table(['JOB', 'NAME', 'PROJECT', 'ENVIRONMENT', 'STEPS'], cells), rows);
    return 0;
  },
};

function jobText(job: Job): string {
  const facts: [string, string | number | null][] = [
    ['id', job.id],
    ['name', job.name],
    ['description', job.description],
    ['project', `${job.project_name} (${job.project_id})`],
    ['environment', `${job.environment_name} (${job.environment_id})`],
    ['engine version', job.dbt_version],
    ...job.execute_steps.map((step): [string, string] => ['step', step]),
    ['timeout', job.execution.timeout_seconds === 0 ? null : `${job.execution.timeout_seconds} s`],
    ['schedule', job.triggers.schedule ? job.schedule.cron : null],
    ['created', job.created_at],
    ['changed', job.updated_at],
  ];
  const rows = facts.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [[`${name}:`, String(value)]],
  );
  return table(['', ''], rows).trimStart();
}

const get: Command<ConnectionOptions> = {
  name: 'get',
  summary: 'show a job',
  description: 'Shows a job; all of its fields with --json.',
  arguments: [JOB_ARGUMENT],
  options: connectionOptions(),
  examples: ['jobs get 12'],
  async run(context, options, [reference = '']) {
    const id = jobId(reference);
    const client = await connect(context.env, options);
    const job = await client.get(JOB_PATH, { path: { job_id: id } }).catch(notFound(`job ${id}`));
    await context.writeResult(jobText(job), job);
    return 0;
  },
};

interface FieldOptions extends ConnectionOptions {
  name?: string;
  project?: string;
  environment?: string;
  step?: string[];
  description?: string;
  engineVersion?: string;
  timeout?: number;
}

const FIELD_OPTIONS = () => [
  option('--name <name>', 'name of the job'),
  option('--project <project>', 'id or name of the project; a new name creates one'),
  option('--environment <environment>', 'id or name of the environment; a new name creates one'),
  repeatable('--step <command>', 'command of a run; may be repeated', (text) => text),
  option('--description <text>', 'description of the job'),
  option('--engine-version <version>', 'version of the engine'),
  option(
    '--timeout <seconds>',
    'time after which a runner ends a run; 0: none',
    parsers.integer(0, 2 ** 31 - 1),
  ),
];

function fieldsOf({ name, project, environment, step, description, engineVersion, timeout }: FieldOptions) {
  return {
    ...(name !== undefined && { name }),
    ...(project !== undefined && projectField(project)),
    ...(environment !== undefined && environmentField(environment)),
    ...(step !== undefined && { execute_steps: step }),
    ...(description !== undefined && { description }),
    ...(engineVersion !== undefined && { dbt_version: engineVersion }),
    ...(timeout !== undefined && { execution: { timeout_seconds: timeout } }),
  };
}

const projectField = (project: string) =>
  isId(project) ? { project_id: Number(project) } : { project_name: project };

const environmentField = (environment: string) =>
  isId(environment) ? { environment_id: Number(environment) } : { environment_name: environment };

const create: Command<FieldOptions> = {
  name: 'create',
  summary: 'create a job',
  description: 'Creates a job and shows it.',
  options: [...FIELD_OPTIONS(), ...connectionOptions()],
  examples: ['jobs create --name Nightly --project Analytics --environment Production --step "dbt build"'],
  async run(context, options) {
    const { name, project, environment, ...others } = options;
    if (name === undefined || project === undefined || environment === undefined)
      throw new UsageError('A job needs --name, --project and --environment.');
    const client = await connect(context.env, options);
    const parents = { ...projectField(project), ...environmentField(environment) };
    const job = await client.post(JOBS_PATH, { body: { ...fieldsOf(others), name, ...parents } });
    await context.writeResult(jobText(job), job);
    return 0;
  },
};

const update: Command<FieldOptions> = {
  name: 'update',
  summary: 'change a job',
  description: 'Replaces the fields that the options set, and shows the job.',
  arguments: [JOB_ARGUMENT],
  options: [...FIELD_OPTIONS(), ...connectionOptions()],
  examples: ['jobs update 12 --step "dbt seed" --step "dbt build"'],
  async run(context, options, [reference = '']) {
    const id = jobId(reference);
    const body = fieldsOf(options);
    if (Object.keys(body).length === 0) throw new UsageError('Nothing to change: set an option.');
    const client = await connect(context.env, options);
    const job = await client.post(JOB_PATH, { path: { job_id: id }, body }).catch(notFound(`job ${id}`));
    await context.writeResult(jobText(job), job);
    return 0;
  },
};

const remove: Command<ConnectionOptions & { yes?: true }> = {
  name: 'delete',
  summary: 'delete a job',
  description: 'Hides a job from lists and new runs, and names the webhooks that list it. Its runs keep it.',
  arguments: [JOB_ARGUMENT],
  options: [option('--yes', 'confirms the deletion; without it nothing is done'), ...connectionOptions()],
  examples: ['jobs delete 12 --yes'],
  async run(context, { yes, ...connection }, [reference = '']) {
    const id = jobId(reference);
    if (yes !== true) throw new UsageError('A deletion cannot be undone: confirm it with --yes.');
    const client = await connect(context.env, connection);
    const deleted = await client.delete(JOB_PATH, { path: { job_id: id } }).catch(notFound(`job ${id}`));
    const webhooks = deleted.webhooks.map((one) => `Webhook ${one.name} (${one.id}) still lists it.`);
    const lines = [`Deleted ${deleted.name} (${id}).`, ...webhooks];
    await context.writeResult(lines.join('\n'), deleted);
    return 0;
  },
};

export const jobsGroup: CommandGroup = {
  name: 'jobs',
  summary: 'list, get, create, update, delete, run',
  commands: [list, get, create, update, remove, runJob] as Command[],
};
