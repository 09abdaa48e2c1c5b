import { RunhookError, type Schemas } from '@runhook/client';
import { EVENT_TYPES, STORED_RUN_STATUSES, type StoredRunStatus } from '@runhook/contract';
import { printable, table } from '@runhook/runtime/terminal-text';
import { type Command, type CommandGroup, choice, option, parsers, timeText } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import { notFound, RUN_ARGUMENT, RUNS_PATH, runId } from './references.ts';
import { cancelRun, retryRun } from './run-actions.ts';
import { runLogs, runSteps } from './run-steps.ts';
import { runWhy } from './run-why.ts';
import { limitOption, takeRows } from './webhooks.ts';

const DELIVERIES_PATH = '/api/v3/accounts/{account_id}/webhooks/deliveries';
const DELIVERY_PATH =
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}';
const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const TIME = 'an age (30m, 12h, 7d) or an ISO 8601 time';

function webhookOption() {
  return option('--webhook <webhook>', 'id or name of the webhook').makeOptionMandatory();
}

interface LogOptions extends ConnectionOptions {
  webhook?: string;
  status?: (typeof DELIVERY_STATUSES)[number];
  event?: (typeof EVENT_TYPES)[number];
  run?: number;
  since?: string;
  limit: number;
}

const listDeliveries: Command<LogOptions> = {
  name: 'list',
  summary: 'list the deliveries of the account or of a webhook',
  description:
    'Lists deliveries, newest first; the options select those of a webhook, a run, a status or a time.',
  options: [
    option('--webhook <webhook>', 'id or name of the webhook'),
    choice('--status <status>', 'only deliveries with this status', DELIVERY_STATUSES),
    choice('--event <type>', 'only deliveries of this event type', EVENT_TYPES),
    option('--run <id>', 'only deliveries of this run', parsers.id),
    option('--since <time>', `only deliveries created since: ${TIME}`, parsers.timestamp),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['deliveries list --status failed --since 24h'],
  async run(context, { webhook, status, event, run, since, limit, ...connection }) {
    const client = await connect(context.env, connection);
    const id = webhook === undefined ? '' : (await resolveWebhook(client, webhook)).id;
    const query = {
      subscription_id: id,
      status: status ?? '',
      event_type: event ?? '',
      run_id: run ?? '',
      since: since ?? '',
      limit: Math.min(limit, 100),
    } as const;
    const rows = await takeRows(client.list(DELIVERIES_PATH, { query }), limit);
    const cells = rows.map((row) => [
      timeText(row.created_at),
      row.id,
      row.webhook_name,
      row.event_type,
      row.run_id,
      row.status,
      `${row.http_status_code}${row.error_code === null ? '' : ` ${row.error_code}`}`,
    ]);
    await context.writeResult(
      table(['CREATED', 'ID', 'WEBHOOK', 'EVENT', 'RUN', 'STATUS', 'LAST'], cells),
      rows,
    );
    return 0;
  },
};

type Detail = Schemas['DeliveryWithAttempts'];

function deliveryText({ attempts, payload, ...delivery }: Detail): string {
  const rows = attempts.map((attempt) => [
    String(attempt.number),
    timeText(attempt.started_at),
    attempt.http_status_code,
    attempt.duration_ms === null ? '-' : `${attempt.duration_ms} ms`,
    attempt.error?.message ?? '',
  ]);
  return [
    `${delivery.id}  ${delivery.event_type}  run ${delivery.run_id}  ${delivery.status}`,
    ...(delivery.reason === null ? [] : [printable(delivery.reason)]),
    ...(rows.length === 0 ? [] : ['', table(['ATTEMPT', 'STARTED', 'STATUS', 'DURATION', 'ERROR'], rows)]),
    ...(payload === null ? [] : ['', printable(payload)]),
  ].join('\n');
}

const getDelivery: Command<ConnectionOptions & { webhook: string }> = {
  name: 'get',
  summary: 'show a delivery with its body and its attempts',
  description: 'Shows a delivery: the exact body that is sent, and the result of each attempt.',
  arguments: [['<delivery>', 'id of the delivery: wdl_…']],
  options: [webhookOption(), ...connectionOptions()],
  examples: ['deliveries get wdl_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x --webhook "Production pager"'],
  async run(context, { webhook, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, webhook);
    const path = { webhook_id: id, delivery_id: reference };
    const delivery = await client
      .get(DELIVERY_PATH, { path })
      .catch(notFound(`delivery ${reference} of ${webhook}`));
    await context.writeResult(deliveryText(delivery), delivery);
    return 0;
  },
};

const redeliver: Command<ConnectionOptions & { webhook: string }> = {
  name: 'redeliver',
  summary: 'send deliveries again',
  description: 'Sends deliveries again, each with its retries, to the endpoint of their webhook.',
  arguments: [['<deliveries...>', 'ids of the deliveries: wdl_…']],
  options: [webhookOption(), ...connectionOptions()],
  examples: ['deliveries redeliver wdl_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x --webhook "Production pager"'],
  async run(context, { webhook, ...connection }, ids) {
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, webhook);
    let areAllQueued = true;
    for (const deliveryId of ids) {
      try {
        const path = { webhook_id: id, delivery_id: deliveryId };
        const delivery = await client.post(`${DELIVERY_PATH}/redeliver`, { path });
        await context.writeRow(`${deliveryId}  is queued again`, delivery);
      } catch (error) {
        // Continues with the other deliveries if one is pending or deleted.
        if (!(error instanceof RunhookError) || (error.status !== 404 && error.status !== 409)) throw error;
        areAllQueued = false;
        await context.writeRow(`${deliveryId}  ${error.message}`, { id: deliveryId, error: error.message });
      }
    }
    return areAllQueued ? 0 : 1;
  },
};

export const deliveriesGroup: CommandGroup = {
  name: 'deliveries',
  summary: 'list, get, redeliver',
  commands: [listDeliveries, getDelivery, redeliver] as Command[],
};

interface RunsOptions extends ConnectionOptions {
  job?: number;
  status?: StoredRunStatus;
  search?: string;
  since?: string;
  until?: string;
  limit: number;
}

const listRuns: Command<RunsOptions> = {
  name: 'list',
  summary: 'list the runs of the account',
  description: 'Lists runs, newest first.',
  options: [
    option('--job <id>', 'only runs of this job', parsers.id),
    choice('--status <status>', 'only runs with this status', STORED_RUN_STATUSES),
    option('--search <text>', 'text in the name of the job, or a complete run id'),
    option('--since <time>', `only runs started since: ${TIME}`, parsers.timestamp),
    option('--until <time>', 'only runs started before, in the same format', parsers.timestamp),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['runs list --status Errored --since 7d'],
  async run(context, { job, status, search = '', since = '', until = '', limit, ...connection }) {
    const client = await connect(context.env, connection);
    const query = {
      ...(job !== undefined && { job_id: job }),
      status: status ?? '',
      search,
      since,
      until,
      limit: Math.min(limit, 100),
    } as const;
    const rows = await takeRows(client.list(RUNS_PATH, { query }), limit);
    const cells = rows.map((row) => [
      String(row.id),
      row.job_name,
      row.status_humanized,
      row.started_at ?? '',
      row.finished_at ?? '',
    ]);
    await context.writeResult(table(['RUN', 'JOB', 'STATUS', 'STARTED', 'FINISHED'], cells), rows);
    return 0;
  },
};

const RUN_FACTS = [
  'id',
  'status_humanized',
  'status_message',
  'reason',
  'job_id',
  'job_name',
  'project_id',
  'project_name',
  'environment_id',
  'environment_name',
  'engine_version',
  'git_branch',
  'git_sha',
  'created_at',
  'started_at',
  'finished_at',
  'errored_at',
  'artifacts_ingested_at',
  'duration',
  'retry_of',
  'href',
] as const satisfies (keyof Schemas['Run'])[];

const getRun: Command<ConnectionOptions> = {
  name: 'get',
  summary: 'show a run',
  description: 'Shows a run as its runner reported it.',
  arguments: [RUN_ARGUMENT],
  options: connectionOptions(),
  examples: ['runs get 2482'],
  async run(context, options, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, options);
    const run = await client
      .get(`${RUNS_PATH}/{run_id}`, { path: { run_id: id } })
      .catch(notFound(`run ${id}`));
    const facts = RUN_FACTS.flatMap((name) => (run[name] === null ? [] : [[`${name}:`, String(run[name])]]));
    await context.writeResult(table(['', ''], facts).trimStart(), run);
    return 0;
  },
};

const runEvents: Command<ConnectionOptions> = {
  name: 'events',
  summary: 'list the events of a run',
  description:
    'Lists the events of a run in order, with the number of webhooks that each has deliveries for.',
  arguments: [RUN_ARGUMENT],
  options: connectionOptions(),
  examples: ['runs events 2482'],
  async run(context, options, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, options);
    const events = await client
      .get('/api/v3/accounts/{account_id}/webhooks/run/{run_id}/events', { path: { run_id: id } })
      .catch(notFound(`run ${id}`));
    const cells = events.map((event) => [
      timeText(event.occurred_at),
      event.event_type,
      event.state,
      String(event.delivery_count),
      event.event_id ?? '',
    ]);
    await context.writeResult(table(['TIME', 'EVENT', 'STATE', 'WEBHOOKS', 'ID'], cells), events);
    return 0;
  },
};

export const runsGroup: CommandGroup = {
  name: 'runs',
  summary: 'list, get, events, why, steps, logs, cancel, retry',
  commands: [listRuns, getRun, runEvents, runWhy, runSteps, runLogs, cancelRun, retryRun] as Command[],
};
