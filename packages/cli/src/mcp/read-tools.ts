import { RunhookError, type Schemas } from '@runhook/client';
import { z } from 'zod';
import { timeText } from '../command.ts';
import { resolveWebhook } from '../connection.ts';
import { notFound } from '../references.ts';
import { takeRows } from '../webhooks.ts';
import { defineTool, inputs, READ_ONLY, type Tool } from './tool.ts';

const WEBHOOKS_PATH = '/api/v3/accounts/{account_id}/webhooks';
const DELIVERY_PATH = `${WEBHOOKS_PATH}/subscription/{webhook_id}/delivery/{delivery_id}` as const;
/** Maximum size of a response body in a delivery, in characters. */
const BODY_CHARACTERS_MAX = 2_000;

const listFailingWebhooks = defineTool({
  name: 'list_failing_webhooks',
  title: 'List failing webhooks',
  description:
    'Lists incidents of webhooks: since when deliveries fail, how many, and the causes with advice. Open incidents are webhooks that fail now. Changes nothing.',
  input: {
    status: z.enum(['open', 'closed']).default('open').describe('`closed`: past incidents.'),
    limit: inputs.limit,
  },
  annotations: READ_ONLY,
  async run(client, { status, limit }) {
    const rows = client.list(`${WEBHOOKS_PATH}/incidents`, { query: { status, limit } });
    return (await takeRows(rows, limit)).map(incidentSummary);
  },
});

function incidentSummary({ causes, ...incident }: Schemas['Incident']) {
  return {
    webhook_id: incident.subscription_id,
    webhook_name: incident.subscription_name,
    status: incident.status,
    since: timeText(incident.since),
    until: timeText(incident.until) || null,
    last_success_at: timeText(incident.last_success_at) || null,
    failed_attempts: incident.failure_count,
    deliveries: incident.delivery_count,
    failed_deliveries: incident.failed_count,
    pending_deliveries: incident.pending_count,
    runs: incident.run_count,
    causes: causes.map((cause) => ({
      cause: cause.title,
      advice: cause.advice,
      http_status_code: cause.http_status_code,
      error_code: cause.error_code,
      deliveries: cause.delivery_count,
      example_delivery_id: cause.delivery_id,
    })),
  };
}

const listRunNotifications = defineTool({
  name: 'list_run_notifications',
  title: 'List the webhooks notified of a run',
  description:
    'Lists the events of a run, each webhook that was or will be notified of them, with the result, and each webhook that was not, with the reason. Changes nothing.',
  input: { run_id: inputs.runId, limit: inputs.limit },
  annotations: READ_ONLY,
  async run(client, { run_id, limit }) {
    const events = await client
      .get(`${WEBHOOKS_PATH}/run/{run_id}/events`, { path: { run_id } })
      .catch(notFound(`run ${run_id}`));
    const rows = client.list(`${WEBHOOKS_PATH}/deliveries`, { query: { run_id, limit } });
    const deliveries = await takeRows(rows, limit);
    const rowsOfOthers = client.list(`${WEBHOOKS_PATH}/run/{run_id}/unnotified`, {
      path: { run_id },
      query: { limit },
    });
    // The reasons are an addition, which may be unavailable while other lists of the account are read.
    const unnotified = await takeRows(rowsOfOthers, limit).catch((error) => {
      if (error instanceof RunhookError) return null;
      throw error;
    });
    return {
      events: events.map((event) => ({
        event_type: event.event_type,
        occurred_at: timeText(event.occurred_at),
        state: event.state,
        notified_webhooks: event.delivery_count,
      })),
      deliveries: deliveries.map((delivery) => ({
        ...deliverySummary(delivery),
        webhook_name: delivery.webhook_name,
      })),
      ...(unnotified && {
        not_notified: unnotified.map((row) => ({
          webhook_id: row.subscription_id,
          webhook_name: row.webhook_name,
          event_types: row.events.map(({ event_type }) => event_type),
          reason: row.message,
        })),
      }),
    };
  },
});

type DeliveryFields = Pick<
  Schemas['DeliveryWithAttempts'],
  | 'id'
  | 'subscription_id'
  | 'event_type'
  | 'run_id'
  | 'job_name'
  | 'status'
  | 'reason'
  | 'attempt_count'
  | 'http_status_code'
  | 'error_code'
  | 'created_at'
  | 'next_attempt_at'
>;

export function deliverySummary(delivery: DeliveryFields) {
  return {
    delivery_id: delivery.id,
    webhook_id: delivery.subscription_id,
    event_type: delivery.event_type,
    run_id: delivery.run_id,
    job_name: delivery.job_name,
    status: delivery.status,
    reason: delivery.reason,
    attempts: delivery.attempt_count,
    last_http_status_code: delivery.http_status_code,
    last_error_code: delivery.error_code,
    created_at: timeText(delivery.created_at),
    next_attempt_at: timeText(delivery.next_attempt_at) || null,
  };
}

const getDelivery = defineTool({
  name: 'get_delivery',
  title: 'Show a delivery with its attempts',
  description:
    'Shows a delivery: its state, its body, and each attempt with the response of the endpoint. Changes nothing.',
  input: { webhook: inputs.webhook, delivery_id: inputs.deliveryId },
  annotations: READ_ONLY,
  async run(client, { webhook, delivery_id }) {
    const { id } = await resolveWebhook(client, webhook);
    const { attempts, payload, ...delivery } = await client
      .get(DELIVERY_PATH, { path: { webhook_id: id, delivery_id } })
      .catch(notFound(`delivery ${delivery_id} of ${webhook}`));
    return {
      ...deliverySummary(delivery),
      payload: payload === null ? null : JSON.parse(payload),
      // Headers are omitted: those of the request may have credentials, those of the response cookies.
      attempt_results: attempts.map((attempt) => ({
        number: attempt.number,
        trigger: attempt.trigger,
        started_at: timeText(attempt.started_at),
        duration_ms: attempt.duration_ms,
        http_status_code: attempt.http_status_code,
        error: attempt.error?.message ?? null,
        response_body: attempt.response_body?.slice(0, BODY_CHARACTERS_MAX) ?? null,
      })),
    };
  },
});

const getRunLogs = defineTool({
  name: 'get_run_logs',
  title: 'Read the logs of a run',
  description:
    'Shows the state of a run and the steps that its runner reported, with the end of their logs. Changes nothing.',
  input: {
    run_id: inputs.runId,
    step: z.int().min(0).optional().describe('Only the step with this index; default: all.'),
    characters: z
      .int()
      .min(100)
      .max(200_000)
      .default(10_000)
      .describe('Maximum length of the log of each step; its end is kept.'),
  },
  annotations: READ_ONLY,
  async run(client, { run_id, step, characters }) {
    const run = await client
      .get('/api/v2/accounts/{account_id}/runs/{run_id}', {
        path: { run_id },
        query: { include_related: 'run_steps' },
      })
      .catch(notFound(`run ${run_id}`));
    const steps = (run.run_steps ?? []).filter(({ index }) => step === undefined || index === step);
    return {
      run_id: run.id,
      job_name: run.job_name,
      status: run.status_humanized,
      status_message: run.status_message,
      started_at: run.started_at,
      finished_at: run.finished_at,
      steps: steps.map(({ index, name, status_humanized, duration_humanized, logs }) => ({
        index,
        name,
        status: status_humanized,
        duration: duration_humanized,
        logs: logs?.slice(-characters) ?? '',
        is_log_shortened: (logs?.length ?? 0) > characters,
      })),
    };
  },
});

export const READ_TOOLS: readonly Tool[] = [
  listFailingWebhooks,
  listRunNotifications,
  getDelivery,
  getRunLogs,
];
