import type { Schemas } from '@runhook/client';
import { type Command, choice, option, parsers, timeText, UsageError } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';

const RECOVER_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recover';
const TIME = 'an age (30m, 12h, 7d) or an ISO 8601 time';

type Request = Schemas['RecoveryRequest'];
type Preview = Schemas['RecoveryPreview'];

interface RecoverOptions extends ConnectionOptions {
  since?: string;
  until?: string;
  include?: NonNullable<Request['include']>;
  status?: NonNullable<Request['status']>;
  again?: true;
  dryRun?: true;
}

export const recover: Command<RecoverOptions> = {
  name: 'recover',
  summary: 'send the failed or unsent events of a time again',
  description:
    'Sends the failed deliveries of a time window again, or events that the webhook did not get, such as those from when it was inactive. The recovery runs after the command has returned.',
  arguments: [['<webhook>', 'id or name of the webhook']],
  options: [
    option(
      '--since <time>',
      `start of the window: ${TIME}; default of --dry-run: the last time for which the webhook was inactive`,
      parsers.timestamp,
    ),
    option('--until <time>', `end of the window: ${TIME}; default: now`, parsers.timestamp),
    choice('--include <events>', 'events to send; default: failed', ['failed', 'unsent', 'all']),
    choice('--status <status>', 'status of the deliveries, instead of --include', ['failed', 'cancelled']),
    option('--again', 'with --include all: also send delivered events again'),
    option('--dry-run', 'only count what would be sent'),
    ...connectionOptions(),
  ],
  examples: [
    'webhooks recover "Production pager" --include unsent --dry-run',
    'webhooks recover "Production pager" --include unsent --since 12h',
  ],
  async run(context, { since, until, include, status, again, dryRun, ...connection }, [reference = '']) {
    if (since === undefined && dryRun !== true)
      throw new UsageError('Give the start of the window with --since, or count with --dry-run.');
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, reference);
    const body: Request = {
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
      ...(include !== undefined && { include }),
      ...(status !== undefined && { status }),
      ...(again && { again }),
      ...(dryRun && { dry_run: dryRun }),
    };
    const result = await client.post(RECOVER_PATH, { path: { webhook_id: id }, body });
    const text =
      'dry_run' in result
        ? previewText(result)
        : `Recovery ${result.id}: ${result.total_count} deliveries of ${timeText(result.since)} to ${timeText(result.until)}.`;
    await context.writeResult(text, result);
    return 0;
  },
};

function previewText({
  since,
  until,
  total_count: total,
  count_limited: isLimited,
  counts,
}: Preview): string {
  if (since === null || until === null) return 'The webhook was never inactive: give a window with --since.';
  const states = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
  const least = isLimited ? 'at least ' : '';
  return `Would send ${least}${total} deliveries of ${timeText(since)} to ${timeText(until)} (${states.join(', ')}).`;
}
