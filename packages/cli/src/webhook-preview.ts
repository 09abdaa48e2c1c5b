import { EVENT_TYPES } from '@runhook/contract';
import { type Command, parsers, repeatable, timeText } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions } from './connection.ts';
import { type DeliveryOptions, filterOptions } from './webhook-options.ts';
import { type EventType, eventType, WEBHOOKS_PATH } from './webhook-text.ts';

interface PreviewOptions
  extends ConnectionOptions,
    Pick<DeliveryOptions, 'runStatus' | 'environment' | 'project'> {
  event?: EventType[];
  job?: number[];
}

/** Number of recent events that a webhook would match. */
export const previewWebhook: Command<PreviewOptions> = {
  name: 'preview',
  summary: 'count the recent events that a webhook would match',
  description: 'Counts the events of the last seven days that match event types, jobs and filters.',
  options: [
    repeatable('--event <type>', 'event type (default: all); may be repeated', eventType),
    repeatable('--job <id>', 'only events of this job; may be repeated', parsers.id),
    ...filterOptions(),
    ...connectionOptions(),
  ],
  examples: ['webhooks preview --event job.run.completed --run-status errored'],
  async run(context, { event, job, runStatus, environment, project, ...connection }) {
    const client = await connect(context.env, connection);
    const list = (values: readonly unknown[] | undefined) => values?.join(',') ?? '';
    const preview = await client.get(`${WEBHOOKS_PATH}/preview`, {
      query: {
        event_types: list(event ?? EVENT_TYPES),
        job_ids: list(job),
        environment_ids: list(environment),
        project_ids: list(project),
        ...(runStatus !== undefined && { run_statuses: list(runStatus) }),
      },
    });
    const { matched_count: matched, total_count: total, since, is_complete: isComplete } = preview;
    const span = isComplete ? 'of the last 7 days' : `since ${timeText(since)}, where the count stopped,`;
    const text = `${matched.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} events ${span} match.`;
    await context.writeResult(text, preview);
    return 0;
  },
};
