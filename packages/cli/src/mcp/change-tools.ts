import { type Client, RunhookError, type Schemas } from '@runhook/client';
import { EVENT_TYPES } from '@runhook/contract';
import { z } from 'zod';
import { CliError, timeText } from '../command.ts';
import { resolveWebhook } from '../connection.ts';
import { JOB_PATH, JOBS_PATH } from '../references.ts';
import { deliverySummary } from './read-tools.ts';
import { defineTool, inputs, originOf, type Tool } from './tool.ts';

const WEBHOOK_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}';
/** Each call sends to an endpoint again. */
const SENDS = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true };

const testEndpoint = defineTool({
  name: 'test_endpoint',
  title: 'Test the endpoint of a webhook',
  description:
    'Sends a signed sample to the endpoint of a webhook and shows whether it accepts it. Changes: the endpoint receives the sample; no delivery is recorded.',
  input: {
    webhook: inputs.webhook,
    event_type: z.enum(EVENT_TYPES).optional().describe('Event type of the sample.'),
  },
  annotations: SENDS,
  async run(client, { webhook, event_type }) {
    const { id, client_url: url } = await resolveWebhook(client, webhook);
    const query = {
      ...(event_type !== undefined && { event_type }),
      include: 'exchange,error_code',
    } as const;
    const result = await client.get(`${WEBHOOK_PATH}/test`, { path: { webhook_id: id }, query });
    return {
      endpoint: originOf(url),
      is_accepted: result.verification_error === null,
      error: result.verification_error,
      http_status_code: result.verification_status_code,
      error_code: result.verification_error_code ?? null,
      duration_ms: result.exchange?.duration_ms ?? null,
    };
  },
});

const redeliver = defineTool({
  name: 'redeliver',
  title: 'Send deliveries again',
  description:
    'Sends deliveries of a webhook again, each with its retries. Changes: the endpoint receives the events once more, and the deliveries are pending until it accepts them.',
  input: {
    webhook: inputs.webhook,
    delivery_ids: z.array(inputs.deliveryId).min(1).max(50).describe('Ids of the deliveries (wdl_…).'),
  },
  annotations: SENDS,
  async run(client, { webhook, delivery_ids }) {
    const { id } = await resolveWebhook(client, webhook);
    const results: unknown[] = [];
    for (const delivery_id of delivery_ids) {
      const path = { webhook_id: id, delivery_id };
      try {
        results.push(
          deliverySummary(await client.post(`${WEBHOOK_PATH}/delivery/{delivery_id}/redeliver`, { path })),
        );
      } catch (error) {
        // Continues with the other deliveries if one is pending or deleted.
        if (!(error instanceof RunhookError) || (error.status !== 404 && error.status !== 409)) throw error;
        results.push({ delivery_id, error: error.message });
      }
    }
    return results;
  },
});

const recover = defineTool({
  name: 'recover',
  title: 'Send the failed or unsent events of a time',
  description:
    'Sends the failed deliveries of a webhook that were created in a time window again, some fifty a second, or events that it did not get, such as those from when it was inactive. Changes: the endpoint receives all of these events; the recovery runs after the call has returned. With dry_run, only counts them.',
  input: {
    webhook: inputs.webhook,
    since: z
      .string()
      .optional()
      .describe(
        'Start of the window: ISO 8601 with a time zone. Default of a dry run: the last time for which the webhook was inactive.',
      ),
    until: z.string().optional().describe('End of the window (exclusive); default: now.'),
    status: z
      .enum(['failed', 'cancelled'])
      .optional()
      .describe('State of the deliveries; default: failed. Excludes include.'),
    include: z
      .enum(['failed', 'unsent', 'all'])
      .optional()
      .describe('unsent: events without a delivery or attempt; all: these and the failed ones.'),
    dry_run: z.boolean().optional().describe('Count what would be sent, and start nothing.'),
  },
  annotations: SENDS,
  async run(client, { webhook, ...fields }) {
    const { id } = await resolveWebhook(client, webhook);
    const present = Object.entries(fields).filter(([, value]) => value !== undefined);
    const body: Schemas['RecoveryRequest'] = Object.fromEntries(present);
    const result = await client.post(`${WEBHOOK_PATH}/recover`, { path: { webhook_id: id }, body });
    const window = { since: timeOrNull(result.since), until: timeOrNull(result.until) };
    const deliveries = result.total_count;
    if ('dry_run' in result)
      return {
        dry_run: true,
        deliveries,
        is_limited: result.count_limited,
        counts: result.counts,
        ...window,
      };
    return { recovery_id: result.id, status: result.status, deliveries, ...window };
  },
});

const timeOrNull = (time: string | null) => (time === null ? null : timeText(time));

const text = (description: string) => z.string().min(1).optional().describe(description);

const triggerRun = defineTool({
  name: 'trigger_run',
  title: 'Trigger a run of a job',
  description:
    'Creates a run of a job, which a runner then executes. Changes: the commands of the job run and may change data; webhooks are notified.',
  input: {
    job: z.union([z.int().positive(), z.string().min(1)]).describe('Id or exact name of the job.'),
    cause: z.string().min(1).describe('Why the run is triggered; shown with the run.'),
    git_branch: text('Branch instead of the job’s.'),
    git_sha: text('Commit instead of the head of the branch.'),
    schema_override: text('Schema instead of the job’s.'),
    target_name_override: text('Target instead of the job’s.'),
    threads_override: z.int().positive().optional().describe('Number of threads instead of the job’s.'),
    steps_override: z.array(z.string().min(1)).optional().describe('Commands instead of the job’s.'),
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  async run(client, { job, ...options }) {
    const path = { job_id: await resolveJob(client, job) };
    const body: Record<string, unknown> = options;
    const run = await client.post(`${JOB_PATH}/run`, { path, body });
    return { run_id: run.id, job_id: run.job_id, status: run.status_humanized, href: run.href };
  },
});

async function resolveJob(client: Client, job: number | string): Promise<number> {
  if (typeof job === 'number' || /^\d{1,15}$/.test(job)) return Number(job);
  const matches: number[] = [];
  for await (const { id } of client.list(JOBS_PATH, { query: { name: job } })) matches.push(id);
  const [id, another] = matches;
  if (id === undefined) throw new CliError('not_found', `There is no job named ${job}.`);
  if (another !== undefined)
    throw new CliError(
      'ambiguous',
      `Several jobs are named ${job}; use the id of one: ${matches.join(', ')}.`,
    );
  return id;
}

export const CHANGE_TOOLS: readonly Tool[] = [testEndpoint, redeliver, recover, triggerRun];
