// SQL by hand: polls every two seconds, by the row versions of PostgreSQL and the newest page of the log.
import { isId } from '@runhook/contract';
import { column, type Queryable, queryRows } from '@runhook/database';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import type { EventStream, StreamHandle } from '../http/envelope.ts';
import { TooManyRequestsError, UnavailableError } from '../http/errors.ts';
import { createReader, QueryReader } from '../http/query-parameters.ts';
import type { Caller } from '../identity/principals.ts';
import type { StreamCallers } from './stream-callers.ts';

const POLL_INTERVAL_MS = 2_000;
/** Time after which a listener must reconnect. */
const STREAM_LIFETIME_MS = 15 * 60_000;
const STREAMS_MAX = 2_000;
const STREAMS_PER_ACCOUNT_MAX = 100;
const RETRY_AFTER_SECONDS = 60;
/** Number of the newest deliveries of a log that are watched. */
const NEWEST_COUNT = 25;

const VERSION = { id: column.text, version: column.text };

/** Selects the versions of subscriptions: `xmin` changes with every write to a row, by its owner or by an attempt. */
const SELECT_SUBSCRIPTION_VERSIONS = `
  SELECT id, xmin::text AS version FROM subscriptions WHERE account_id = $1 AND deleted_at IS NULL`;

/**
 * Selects the newest page of the log, because deliveries that are deferred or cancelled at once do not change their
 * subscription.
 */
const SELECT_NEWEST_DELIVERIES = `
  SELECT $2::text AS id, coalesce(md5(string_agg(concat_ws(' ', id, status, attempt_count, trigger), ',')), '') AS version
  FROM (
    SELECT id, status, attempt_count, trigger FROM deliveries
    WHERE account_id = $1 AND subscription_id = (
      SELECT id FROM subscriptions WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL)
    ORDER BY day DESC, created_at DESC, id DESC
    LIMIT ${NEWEST_COUNT}
  ) AS newest`;

interface WatchTarget {
  accountId: number;
  /** Subscription whose log is watched, too; null for none. */
  subscriptionId: string | null;
}

type StreamCaller = Pick<Caller, 'principal' | 'credential'>;

interface Listener {
  send(event: string, data: object): void;
  end(): void;
}

export interface ChangeStreamOptions {
  /** The database that lists are read from, so that a notified listener finds the change there. */
  database: Queryable;
  /** Ends streams whose caller has lost access. */
  callers: Pick<StreamCallers, 'watch'>;
  pollIntervalMs?: number | undefined;
  streamsMax?: { all: number; perAccount: number };
}

/**
 * Notifies listeners of changes to webhooks of an account. Listeners of the same webhooks share one poll every two
 * seconds, and webhooks without listeners are not polled.
 */
export class ChangeStreams {
  readonly #options: ChangeStreamOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #listeners = new Map<Listener, number>();
  #isClosed = false;

  constructor(options: ChangeStreamOptions) {
    this.#options = options;
  }

  /**
   * Returns a stream that is not counted yet, because it may never begin: HEAD ends before it, and a caller may have
   * left. Its `start` checks the limits and counts it in one step, and throws a 429 when too many streams are open.
   */
  open(target: WatchTarget, caller: StreamCaller): EventStream {
    return { start: (listener) => this.#start(target, caller, listener) };
  }

  /** Ends all streams: their listeners connect to another process. */
  close(): void {
    this.#isClosed = true;
    for (const listener of [...this.#listeners.keys()]) listener.end();
  }

  #start(target: WatchTarget, caller: StreamCaller, listener: Listener): StreamHandle {
    this.#requireCapacity(target.accountId);
    const key = `${target.accountId}/${target.subscriptionId ?? ''}`;
    const watch = this.#watches.get(key) ?? new Watch(this.#options, target);
    this.#watches.set(key, watch);
    const ready = watch.add(listener);
    this.#listeners.set(listener, target.accountId);
    const lifetimeTimer = setTimeout(() => listener.end(), STREAM_LIFETIME_MS);
    lifetimeTimer.unref();
    const unwatchCaller = this.#options.callers.watch(caller, target.accountId, () => listener.end());
    const close = () => {
      clearTimeout(lifetimeTimer);
      unwatchCaller();
      this.#listeners.delete(listener);
      if (watch.remove(listener) === 0 && this.#watches.get(key) === watch) this.#watches.delete(key);
    };
    return { ready, close };
  }

  #requireCapacity(accountId: number): void {
    if (this.#isClosed) throw new UnavailableError();
    const { all, perAccount } = this.#options.streamsMax ?? {
      all: STREAMS_MAX,
      perAccount: STREAMS_PER_ACCOUNT_MAX,
    };
    const accounts = [...this.#listeners.values()];
    if (accounts.length >= all || accounts.filter((id) => id === accountId).length >= perAccount)
      throw new TooManyRequestsError(RETRY_AFTER_SECONDS);
  }
}

/** Polls one target for changes while it has listeners. */
class Watch {
  readonly #options: ChangeStreamOptions;
  readonly #target: WatchTarget;
  readonly #listeners = new Set<Listener>();
  #lastVersions: Map<string, string> | null = null;
  #firstPoll: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ChangeStreamOptions, target: WatchTarget) {
    this.#options = options;
    this.#target = target;
  }

  /** Resolves once there is a first result to compare with: changes that are committed afterwards are sent. */
  add(listener: Listener): Promise<void> {
    this.#listeners.add(listener);
    this.#firstPoll ??= this.#poll();
    return this.#firstPoll;
  }

  remove(listener: Listener): number {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) clearTimeout(this.#timer);
    return this.#listeners.size;
  }

  async #poll(): Promise<void> {
    try {
      const current = await this.#readVersions();
      const changed = this.#lastVersions === null ? [] : changedIds(this.#lastVersions, current);
      this.#lastVersions = current;
      if (changed.length > 0)
        for (const listener of this.#listeners) listener.send('changed', { subscription_ids: changed });
    } catch {
      // The next successful poll reports the changes; after a failed first poll it reports all webhooks.
      this.#lastVersions ??= new Map();
    }
    if (this.#listeners.size === 0) return;
    this.#timer = setTimeout(() => void this.#poll(), this.#options.pollIntervalMs ?? POLL_INTERVAL_MS);
    this.#timer.unref();
  }

  async #readVersions(): Promise<Map<string, string>> {
    const { database } = this.#options;
    const { accountId, subscriptionId } = this.#target;
    const versions = new Map<string, string>();
    for (const { id, version } of await queryRows(database, VERSION, SELECT_SUBSCRIPTION_VERSIONS, [
      accountId,
    ]))
      versions.set(id, version);
    if (subscriptionId === null) return versions;
    const [log] = await queryRows(database, VERSION, SELECT_NEWEST_DELIVERIES, [accountId, subscriptionId]);
    const version = versions.get(subscriptionId);
    if (log && version !== undefined) versions.set(subscriptionId, `${version} ${log.version}`);
    return versions;
  }
}

/** Returns the ids that were changed, added or removed. */
function changedIds(previous: ReadonlyMap<string, string>, current: ReadonlyMap<string, string>): string[] {
  const changed = [...current].filter(([id, version]) => previous.get(id) !== version).map(([id]) => id);
  const removed = [...previous.keys()].filter((id) => !current.has(id));
  return [...changed, ...removed];
}

const subscriptionId = createReader(
  (text) => (isId('subscription', text) ? text : null),
  'must be the id of a webhook',
);

/** Streams changes as they happen (docs/contract.md#changes-as-they-happen). */
export function changesEndpoint(streams: ChangeStreams): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/changes',
    access: READ_WEBHOOKS,
    async handle({ account, principal, credential, query }) {
      const reader = new QueryReader(query);
      const target = reader.optional('subscription_id', subscriptionId);
      reader.check();
      return {
        code: 200,
        data: null,
        stream: streams.open({ accountId: account.id, subscriptionId: target }, { principal, credential }),
      };
    },
  };
}
