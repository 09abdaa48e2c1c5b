import { truncateWithEllipsis } from '@runhook/contract';
import { listQuarantined } from '@runhook/database';
import {
  createQueueBackend,
  type FailedJob,
  openQueueAdmin,
  type QueueAdmin,
  type QueueStats,
} from '@runhook/queue';
import { printable, table } from '@runhook/runtime/terminal-text';
import {
  AdminError,
  type Command,
  type CommandGroup,
  flag,
  type Resources,
  UsageError,
  valueOption,
} from './command.ts';
import { quarantinedItemView, releaseQuarantinedItems, removeQuarantinedItems } from './quarantine.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 1_000;
const REASON_CHARACTERS_MAX = 80;

const stats: Command<object> = {
  name: 'stats',
  summary: 'show the number of jobs in the queue, and the memory of its server',
  description:
    'Shows the number of waiting, active, delayed and failed jobs of each queue, in total and per shard; the age of the oldest waiting job; and the memory and eviction policy of the server. Exits with 1 if the server may drop jobs.',
  options: [],
  examples: ['queue stats', 'queue stats --json'],
  needsQueue: true,
  run: (_options, resources) =>
    withQueueAdmin(resources, async (queueAdmin) => {
      const found = await queueAdmin.stats();
      return {
        json: statsView(found),
        text: statsText(found),
        exitCode: found.evictionPolicy === null ? 0 : 1,
      };
    }),
};

const failed: Command<{ limit?: number }> = {
  name: 'failed',
  summary: 'list failed messages and quarantined items',
  description:
    'Lists the newest failed jobs: invalid messages, of which the queue stores the newest 1,000, and items that are set aside (`quarantined`): items that a store rejected, events whose id is on record with other data (`conflict`), and events whose id has a time outside the log (`out_of_range`). The JSON has their content.',
  options: [
    valueOption(
      '--limit <count>',
      `maximum number; default: ${LIMIT_DEFAULT}`,
      (option) => (text: string) => {
        const limit = Number(text);
        if (Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return limit;
        throw new UsageError(`${option} must be a whole number from 1 to ${LIMIT_MAX}.`);
      },
    ),
  ],
  examples: ['queue failed', 'queue failed --limit 100 --json'],
  needsQueue: true,
  run: ({ limit = LIMIT_DEFAULT }, resources) =>
    withQueueAdmin(resources, async (queueAdmin) => {
      const jobs = await queueAdmin.failed(limit);
      const quarantined = await listQuarantined(resources.pool, { limit });
      const items = [...jobs.map(failedView), ...quarantined.map(quarantinedItemView)]
        .sort((one, other) => (one.failed_at < other.failed_at ? 1 : -1))
        .slice(0, limit);
      return { json: items, text: items.length === 0 ? 'No failed jobs.' : failedTable(items) };
    }),
};

const retry: Command<{ id?: string[]; all?: boolean }> = {
  name: 'retry',
  summary: 'queue failed messages and quarantined items again',
  description:
    'Queues failed jobs again, for a release that accepts them. A message that is still invalid fails again, and an item that a store still rejects is set aside again. An event out of range and a conflict get a new id. A conflict is released by its id only, and a job that was stored only in part cannot be retried; the command then exits with 1.',
  options: [idsOption(), flag('--all', 'all failed jobs and quarantined items except conflicts')],
  examples: ['queue retry --id evt_…', 'queue retry --all'],
  needsQueue: true,
  check({ id, all }) {
    if ((id === undefined) === (all === undefined)) throw new UsageError('Give either --id or --all.');
  },
  run: ({ id }, resources) =>
    withQueueAdmin(resources, async (queueAdmin) => {
      const { queueUrl = '', pool } = resources;
      const quarantineResult = await releaseQuarantinedItems({ pool, queueUrl }, id ?? null);
      const released = new Set([...quarantineResult.released, ...quarantineResult.remaining]);
      const ids = id?.filter((one) => !released.has(one)) ?? null;
      const jobResult = ids?.length === 0 ? { retried: [], remaining: [] } : await queueAdmin.retry(ids);
      const retried = [...jobResult.retried, ...quarantineResult.released];
      const remaining = [...jobResult.remaining, ...quarantineResult.remaining];
      return {
        json: { retried, remaining },
        text: [
          `Queued again: ${retried.length}.`,
          ...remaining.map(
            (one) =>
              `  ${printable(one)} remains: it does not exist, was stored only in part, is a conflict (use --id), or is still rejected`,
          ),
        ].join('\n'),
        exitCode: remaining.length === 0 ? 0 : 1,
      };
    }),
};

const remove: Command<{ id: string[] }> = {
  name: 'remove',
  summary: 'remove quarantined items permanently',
  description:
    'Removes items that were set aside: an event is never delivered, a delivery is cancelled. Exits with 1 if an id is unknown.',
  options: [idsOption().makeOptionMandatory()],
  examples: ['queue remove --id evt_…'],
  async run({ id }, { pool }) {
    const removed = await removeQuarantinedItems(pool, id);
    const unknown = id.filter((one) => !removed.includes(one));
    return {
      json: { removed, unknown },
      text: [
        `Removed: ${removed.length}.`,
        ...unknown.map((one) => `  ${printable(one)} is not set aside`),
      ].join('\n'),
      exitCode: unknown.length === 0 ? 0 : 1,
    };
  },
};

function idsOption() {
  return valueOption('--id <id>', 'id of the item, as in queue failed; may be repeated', () => appendValue);
}

function appendValue(text: string, previous: unknown): string[] {
  return [...(Array.isArray(previous) ? previous : []), text];
}

async function withQueueAdmin<T>(
  { queueUrl }: Resources,
  work: (queueAdmin: QueueAdmin) => Promise<T>,
): Promise<T> {
  if (queueUrl === undefined) throw new AdminError('environment', 'QUEUE_URL is not set.');
  const queueAdmin = openQueueAdmin(createQueueBackend(queueUrl), () => undefined);
  try {
    return await work(queueAdmin);
  } finally {
    // Closing a queue that cannot be reached fails, but the original error is reported.
    await queueAdmin.close().catch(() => undefined);
  }
}

function statsView({ backend, usedShare, evictionPolicy, queues }: QueueStats) {
  return {
    backend,
    used_share: usedShare,
    eviction_policy: evictionPolicy,
    queues: queues.map(({ name, counts, oldestAddedAtMs, isPaused, shards }) => ({
      name,
      ...counts,
      oldest_added_at: oldestAddedAtMs === null ? null : new Date(oldestAddedAtMs).toISOString(),
      paused: isPaused,
      shards: shards.map((one) => ({ shard: one.shard, draining: one.isDraining, ...one.counts })),
    })),
  };
}

function statsText({ backend, usedShare, evictionPolicy, queues }: QueueStats): string {
  const rows = queues.map(({ name, counts, oldestAddedAtMs, isPaused }) => [
    isPaused ? `${name} (paused)` : name,
    ...cells(counts),
    oldestAddedAtMs === null ? '-' : `${Math.max(0, Math.round((Date.now() - oldestAddedAtMs) / 1_000))} s`,
  ]);
  return [
    table(['QUEUE', 'WAITING', 'ACTIVE', 'DELAYED', 'FAILED', 'OLDEST'], rows),
    '',
    ...shardsText(queues),
    usedShare === 0 ? `Server: ${backend}.` : `Server: ${backend}, ${Math.round(usedShare * 100)} % full.`,
    ...(evictionPolicy === null
      ? []
      : [`It may drop jobs: its maxmemory-policy is ${evictionPolicy}; set it to noeviction.`]),
  ].join('\n');
}

/** Returns a table of the shards if there is more than one. */
function shardsText(queues: QueueStats['queues']): string[] {
  const rows = queues.flatMap(({ name, shards }) =>
    shards.map(({ shard, isDraining, counts }) => [
      isDraining ? `${shard} (draining)` : String(shard),
      name,
      ...cells(counts),
    ]),
  );
  if (rows.length === queues.length) return [];
  rows.sort(([one = ''], [other = '']) => Number.parseInt(one, 10) - Number.parseInt(other, 10));
  return [table(['SHARD', 'QUEUE', 'WAITING', 'ACTIVE', 'DELAYED', 'FAILED'], rows), ''];
}

const cells = ({ waiting, active, delayed, failed }: QueueStats['queues'][number]['counts']) =>
  [waiting, active, delayed, failed].map(String);

function failedView({ failedAtMs, isTruncated, ...job }: FailedJob) {
  return { ...job, failed_at: new Date(failedAtMs).toISOString(), is_truncated: isTruncated };
}

function failedTable(
  jobs: readonly Pick<ReturnType<typeof failedView>, 'id' | 'queue' | 'name' | 'failed_at' | 'reason'>[],
): string {
  const cut = (text: string) => truncateWithEllipsis(text, REASON_CHARACTERS_MAX);
  return table(
    ['ID', 'QUEUE', 'NAME', 'FAILED', 'REASON'],
    jobs.map(({ id, queue, name, failed_at, reason }) => [cut(id), queue, cut(name), failed_at, cut(reason)]),
  );
}

export const queueGroup: CommandGroup = {
  name: 'queue',
  summary: 'the queue: jobs, failed messages and quarantined items',
  commands: [stats, failed, retry, remove] as Command[],
};
