// SQL by hand: polls every two seconds, by the row versions of PostgreSQL and the newest page of the log.
import { isId } from '@runhook/contract';
import { column, type Queryable, queryRows } from '@runhook/database';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import type { BegunStream, EventStream } from '../http/envelope.ts';
import { TooManyRequestsError, UnavailableError } from '../http/errors.ts';
import { QueryReader, readBy } from '../http/query-parameters.ts';

const LOOK_EVERY_MS = 2_000;
/** Time after which a listener must reconnect and authenticate again. */
const LIFE_MS = 15 * 60_000;
const STREAMS_MAX = 2_000;
const STREAMS_OF_ACCOUNT_MAX = 100;
const RETRY_AFTER_SECONDS = 60;
/** Number of deliveries on the first page of the log. */
const NEWEST = 25;

const VERSION = { id: column.text, version: column.text };

/** `xmin` changes with every write to a subscription, by its owner or by an attempt. */
const SUBSCRIPTIONS = `
  SELECT id, xmin::text AS version FROM subscriptions WHERE account_id = $1 AND deleted_at IS NULL`;

/** Reads the log because deliveries that are deferred or cancelled at once do not change their subscription. */
const LOG = `
  SELECT $2::text AS id, coalesce(md5(string_agg(concat_ws(' ', id, status, attempt_count, trigger), ',')), '') AS version
  FROM (
    SELECT id, status, attempt_count, trigger FROM deliveries
    WHERE account_id = $1 AND subscription_id = (
      SELECT id FROM subscriptions WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL)
    ORDER BY day DESC, created_at DESC, id DESC
    LIMIT ${NEWEST}
  ) AS newest`;

interface Watched {
  accountId: number;
  /** Subscription whose log is watched, too; null for none. */
  subscriptionId: string | null;
}

interface Listener {
  send(event: string, data: object): void;
  end(): void;
}

export interface ChangeStreamOptions {
  /** The database that lists are read from, so that a notified listener finds the change there. */
  database: Queryable;
  lookEveryMs?: number | undefined;
  streamsMax?: { all: number; ofAccount: number };
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
   * left. `begin` checks the limits and counts in one step, and throws a 429 when too many streams are open.
   */
  open(watched: Watched): EventStream {
    return { begin: (listener) => this.#begin(watched, listener) };
  }

  /** Ends all streams: their listeners connect to another process. */
  close(): void {
    this.#isClosed = true;
    for (const listener of [...this.#listeners.keys()]) listener.end();
  }

  #begin(watched: Watched, listener: Listener): BegunStream {
    this.#requireCapacity(watched.accountId);
    const key = `${watched.accountId}/${watched.subscriptionId ?? ''}`;
    const watch = this.#watches.get(key) ?? new Watch(this.#options, watched);
    this.#watches.set(key, watch);
    const ready = watch.add(listener);
    this.#listeners.set(listener, watched.accountId);
    const life = setTimeout(() => listener.end(), LIFE_MS);
    life.unref();
    const leave = () => {
      clearTimeout(life);
      this.#listeners.delete(listener);
      if (watch.remove(listener) === 0 && this.#watches.get(key) === watch) this.#watches.delete(key);
    };
    return { ready, leave };
  }

  #requireCapacity(accountId: number): void {
    if (this.#isClosed) throw new UnavailableError();
    const { all, ofAccount } = this.#options.streamsMax ?? {
      all: STREAMS_MAX,
      ofAccount: STREAMS_OF_ACCOUNT_MAX,
    };
    const accounts = [...this.#listeners.values()];
    if (accounts.length >= all || accounts.filter((id) => id === accountId).length >= ofAccount)
      throw new TooManyRequestsError(RETRY_AFTER_SECONDS);
  }
}

/** Polls while there are listeners. */
class Watch {
  readonly #options: ChangeStreamOptions;
  readonly #watched: Watched;
  readonly #listeners = new Set<Listener>();
  #seen: Map<string, string> | null = null;
  #firstLook: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ChangeStreamOptions, watched: Watched) {
    this.#options = options;
    this.#watched = watched;
  }

  /** Resolves once there is a first result to compare with: changes that are committed afterwards are sent. */
  add(listener: Listener): Promise<void> {
    this.#listeners.add(listener);
    this.#firstLook ??= this.#look();
    return this.#firstLook;
  }

  remove(listener: Listener): number {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) clearTimeout(this.#timer);
    return this.#listeners.size;
  }

  async #look(): Promise<void> {
    try {
      const now = await this.#versions();
      const changed = this.#seen === null ? [] : changedIds(this.#seen, now);
      this.#seen = now;
      if (changed.length > 0)
        for (const listener of this.#listeners) listener.send('changed', { subscription_ids: changed });
    } catch {
      // The next successful poll reports the changes; after a failed first poll it reports all webhooks.
      this.#seen ??= new Map();
    }
    if (this.#listeners.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), this.#options.lookEveryMs ?? LOOK_EVERY_MS);
    this.#timer.unref();
  }

  async #versions(): Promise<Map<string, string>> {
    const { database } = this.#options;
    const { accountId, subscriptionId } = this.#watched;
    const versions = new Map<string, string>();
    for (const { id, version } of await queryRows(database, VERSION, SUBSCRIPTIONS, [accountId]))
      versions.set(id, version);
    if (subscriptionId === null) return versions;
    const [log] = await queryRows(database, VERSION, LOG, [accountId, subscriptionId]);
    const version = versions.get(subscriptionId);
    if (log && version !== undefined) versions.set(subscriptionId, `${version} ${log.version}`);
    return versions;
  }
}

/** Returns the ids that were changed, added or removed. */
function changedIds(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): string[] {
  const changed = [...now].filter(([id, version]) => before.get(id) !== version).map(([id]) => id);
  const gone = [...before.keys()].filter((id) => !now.has(id));
  return [...changed, ...gone];
}

const subscriptionId = readBy(
  (text) => (isId('subscription', text) ? text : null),
  'must be the id of a webhook',
);

/** Streams changes as they happen (docs/contract.md#changes-as-they-happen). */
export function changesEndpoint(streams: ChangeStreams): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/changes',
    access: READ_WEBHOOKS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const watched = reader.optional('subscription_id', subscriptionId);
      reader.check();
      return {
        code: 200,
        data: null,
        stream: streams.open({ accountId: account.id, subscriptionId: watched }),
      };
    },
  };
}
