import { setTimeout as delay } from 'node:timers/promises';
import type { Queue } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { type Connector, QueueUnavailableError } from '../backend.ts';
import { requireRedisClient } from './connection.ts';
import { isForbidden } from './forbidden.ts';

/*
 * The function of Redis that adds jobs for users who may run no scripts, because a script may loop forever
 * (ADR 65). The dispatchers load it. Its jobs equal those of BullMQ's addStandardJob and addPrioritizedJob.
 */

/** Incremented with each change of the library. A later release keeps the functions that publishers call. */
const LIBRARY_VERSION = 1;
const LIBRARY = 'runhook_publish';
const FUNCTION = 'runhook_publish_1';

/**
 * Key: `meta` of the queue. Arguments of each job: id, name, data as JSON, priority (0 for none), and trace context or an
 * empty string. An existing job is skipped; one that is retained as failed is added with an extended id. Limits the jobs
 * of a call, because other clients wait meanwhile.
 */
const CODE = `#!lua name=${LIBRARY}
-- version ${LIBRARY_VERSION}
local FIELDS, JOBS_MAX = 5, 500

local function add(prefix, settings, ms, id, name, data, priority, trace)
  local call = redis.call
  if call('EXISTS', prefix .. id) == 1 then
    if not call('ZSCORE', prefix .. 'failed', id) then return 0 end
    id = id .. '_' .. ms
  end
  local opts = { attempts = 0, removeOnComplete = true }
  if priority > 0 then opts.priority = priority end
  if trace ~= '' then opts.tm = trace end
  call('INCR', prefix .. 'id')
  call('HMSET', prefix .. id, 'name', name, 'data', data, 'opts', cjson.encode(opts),
    'timestamp', ms, 'delay', 0, 'priority', priority)
  call('XADD', prefix .. 'events', '*', 'event', 'added', 'jobId', id, 'name', name)
  if priority > 0 then
    local score = priority * 4294967296 + call('INCR', prefix .. 'pc') % 4294967296
    call('ZADD', prefix .. 'prioritized', score, id)
  else
    call('LPUSH', prefix .. 'wait', id)
  end
  if not settings.isPaused then call('ZADD', prefix .. 'marker', 0, '0') end
  call('XADD', prefix .. 'events', 'MAXLEN', '~', settings.maxLen, '*', 'event', 'waiting', 'jobId', id)
  return 1
end

local function publish(keys, args)
  local prefix = #keys == 1 and string.match(keys[1], '^(.*:)meta$')
  local count = #args / FIELDS
  if not prefix or count % 1 ~= 0 or count > JOBS_MAX then
    return redis.error_reply('ERR ${FUNCTION} takes the meta key and at most ' .. JOBS_MAX .. ' jobs of ' .. FIELDS .. ' arguments')
  end
  local meta = redis.call('HMGET', keys[1], 'opts.maxLenEvents', 'paused')
  local settings = { maxLen = meta[1] or 100, isPaused = meta[2] }
  local time = redis.call('TIME')
  local ms = string.format('%d%03d', time[1], math.floor(time[2] / 1000))
  local added = 0
  for index = 1, #args, FIELDS do
    local id, name, data, priority, trace = unpack(args, index, index + FIELDS - 1)
    added = added + add(prefix, settings, ms, id, name, data, tonumber(priority) or 0, trace)
  end
  return added
end

redis.register_function('${FUNCTION}', publish)
`;

/** Reply of a server that has no functions, because it is older than Redis 7. */
const UNSUPPORTED = /unknown command/i;
const NOT_LOADED = /Function not found/;
/** Waits for the dispatchers, which load the function every two seconds, within the timeout of a call. */
const LOAD_WAIT = { tries: 10, delayMs: 300 };

export const REDIS_PUBLISH_FUNCTION: Pick<Connector, 'publishByFunction' | 'loadPublishFunction'> = {
  async publishByFunction(queue, jobs) {
    const args = jobs.flatMap(({ name, data, opts }) => [
      opts?.jobId ?? '',
      name,
      JSON.stringify(data),
      opts?.priority ?? 0,
      traceContext(queue, opts?.telemetry?.metadata),
    ]);
    await callWhenLoaded(() => requireRedisClient(queue).fcall(FUNCTION, 1, queue.toKey('meta'), ...args));
  },

  async loadPublishFunction(queue) {
    const client = requireRedisClient(queue);
    const servers = client instanceof Cluster ? client.nodes('master') : [client];
    try {
      await Promise.all(servers.map(load));
    } catch (error) {
      const isUnsupported = error instanceof Error && UNSUPPORTED.test(error.message);
      if (!isUnsupported && !isForbidden(error)) throw error;
    }
  },
};

/** Returns the context of the job's trace, or that of the active one; empty without traces. */
function traceContext<Data>(queue: Queue<Data>, metadata: string | undefined): string {
  const manager = queue.opts.telemetry?.contextManager;
  return metadata ?? manager?.getMetadata(manager.active()) ?? '';
}

async function callWhenLoaded(call: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call();
      return;
    } catch (error) {
      if (!(error instanceof Error) || !NOT_LOADED.test(error.message)) throw error;
      if (attempt === LOAD_WAIT.tries)
        throw new QueueUnavailableError(
          `The queue is not ready: its server has no function ${FUNCTION}, which the dispatchers load (docs/security.md).`,
          { cause: error },
        );
    }
    await delay(LOAD_WAIT.delayMs);
  }
}

/** Loads the library unless the server has it, or one of a later release. */
async function load(server: Redis): Promise<void> {
  const [library] = (await server.function('LIST', 'LIBRARYNAME', LIBRARY, 'WITHCODE')) as unknown[][];
  const code = String(library?.at(-1) ?? '');
  const version = Number(/^-- version (\d+)$/m.exec(code)?.[1] ?? 0);
  if (code === CODE || version > LIBRARY_VERSION) return;
  await server.function('LOAD', 'REPLACE', CODE);
}
