import { EVENT_TYPES } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import { type Command, choice, option } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import { notFound, RUN_ARGUMENT, runId } from './references.ts';
import { type EventType, WEBHOOKS_PATH } from './webhook-text.ts';
import { limitOption, takeRows } from './webhooks.ts';

interface WhyOptions extends ConnectionOptions {
  webhook?: string;
  event?: EventType;
  limit: number;
}

/** Why webhooks did not hear about a run. */
export const runWhy: Command<WhyOptions> = {
  name: 'why',
  summary: 'explain why webhooks did not hear about a run',
  description:
    'Lists the webhooks that have no delivery of an event of the run, each with the reason. Evaluates the webhooks as they are now, and names changes since.',
  arguments: [RUN_ARGUMENT],
  options: [
    option('--webhook <webhook>', 'id or name of the webhook'),
    choice('--event <type>', 'only this event', EVENT_TYPES),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['runs why 2482 --webhook "Production pager"'],
  async run(context, { webhook, event, limit, ...connection }, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, connection);
    const query = {
      ...(webhook !== undefined && { webhook_id: (await resolveWebhook(client, webhook)).id }),
      ...(event !== undefined && { event_type: event }),
      limit: Math.min(limit, 100),
    };
    const list = client.list(`${WEBHOOKS_PATH}/run/{run_id}/unnotified`, { path: { run_id: id }, query });
    const rows = await takeRows(list, limit).catch(notFound(`run ${id}`));
    const cells = rows.map((row) => [
      row.webhook_name,
      row.events.map(({ event_type }) => event_type).join(' '),
      row.message,
    ]);
    const text =
      rows.length === 0
        ? `No webhook missed an event of run ${id} that was matched with webhooks.`
        : table(['WEBHOOK', 'NOT NOTIFIED OF', 'REASON'], cells);
    await context.writeResult(text, rows);
    return 0;
  },
};
