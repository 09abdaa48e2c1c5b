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
  summary: 'show what waits in the queue, and how full its server is',
  description:
    'Shows for each queue how many jobs wait, are worked on, wait for their time, and were given up, in all and in each shard; how long the first in line has waited; and whether its server keeps what it has. Ends with 1 when that could lose jobs.',
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
  summary: 'show the failed messages and the items that were set aside',
  description:
    'Shows the newest failed jobs: messages that are no events, of which the queue stores the newest 1,000, and items that are quarantined (`quarantined`): what a store rejected, events whose id is on record with other data (`conflict`), and events whose id carries a time outside the log (`out_of_range`). The document of --json has their content.',
  options: [
    valueOption('--limit <count>', `how many, ${LIMIT_DEFAULT} when omitted`, (option) => (text: string) => {
      const limit = Number(text);
      if (Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return limit;
      throw new UsageError(`${option} must be a whole number from 1 to ${LIMIT_MAX}.`);
    }),
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
  summary: 'put failed jobs and items that were set aside back on the queue',
  description:
    'Puts failed jobs back on the queue, for a release that understands them. A message that is still no event fails again, and an item that a store still rejects is set aside again. An event out of range and a conflict get a new id. A conflict is put back only by its id, and a job of which only the beginning was stored not at all; the command then exits with 1.',
  options: [idsOption(), flag('--all', 'all of them')],
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
              `  ${printable(one)} stays: it does not exist, it was not stored completely, it is a conflict (give its --id), or it is still rejected`,
          ),
        ].join('\n'),
        exitCode: remaining.length === 0 ? 0 : 1,
      };
    }),
};

const remove: Command<{ id: string[] }> = {
  name: 'remove',
  summary: 'remove items that were set aside, for good',
  description:
    'Removes items that were set aside because a store rejected their data: an event is never delivered, a delivery is cancelled. Exits with 1 when an id is not among them.',
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
  return valueOption(
    '--id <id>',
    'of the item, as queue failed shows it; may be repeated',
    () => appendValue,
  );
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
  summary: 'the queue: what waits, and what was given up',
  commands: [stats, failed, retry, remove] as Command[],
};
