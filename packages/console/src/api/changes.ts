import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { consoleUrl } from '../served-page.ts';
import { activityKey } from './activity.ts';
import { logKey } from './deliveries.ts';
import { incidentsKey, ratesKey } from './incidents.ts';
import { isLive, setLive } from './live.ts';
import { webhooksKey } from './subscriptions.ts';

/** Minimum age of expensive queries before a change refreshes them. */
const LIST_REFRESH_MS = 5_000;
const STATISTICS_REFRESH_MS = 15_000;
/** Wait before reconnecting after an error response: the browser does not reconnect an `EventSource` after one. */
const RECONNECT_MS = 60_000;

/**
 * Subscribes to changes of the account's webhooks while the page is visible, and refetches the queries that they affect.
 * @param webhookId webhook whose log is shown; null if none is
 */
export function useChanges(accountId: number, webhookId: string | null): void {
  const client = useQueryClient();
  useEffect(() => {
    const stream = new ChangeStream(client, accountId, webhookId);
    return () => stream.close();
  }, [client, accountId, webhookId]);
}

class ChangeStream {
  readonly #client: QueryClient;
  readonly #accountId: number;
  readonly #url: string;
  readonly #throttles = new Map<string, ReturnType<typeof setTimeout>>();
  #source: EventSource | null = null;
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: QueryClient, accountId: number, webhookId: string | null) {
    this.#client = client;
    this.#accountId = accountId;
    const query = webhookId === null ? '' : `?subscription_id=${encodeURIComponent(webhookId)}`;
    this.#url = consoleUrl(`api/v3/accounts/${accountId}/webhooks/changes${query}`);
    document.addEventListener('visibilitychange', this.#onVisibilityChange);
    window.addEventListener('offline', this.#onDisconnect);
    this.#onVisibilityChange();
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#onVisibilityChange);
    window.removeEventListener('offline', this.#onDisconnect);
    this.#disconnect();
  }

  readonly #onVisibilityChange = (): void => {
    if (document.visibilityState === 'visible') this.#connect();
    else this.#disconnect();
  };

  /** Makes the pages poll, and refetches their data immediately, which also shows if the server fails. */
  readonly #onDisconnect = (): void => {
    if (!isLive()) return;
    setLive(false);
    void this.#client.invalidateQueries({ queryKey: webhooksKey(this.#accountId) });
  };

  #connect(): void {
    this.#disconnect();
    const source = new EventSource(this.#url);
    this.#source = source;
    source.addEventListener('open', () => {
      setLive(true);
      // Refetches what may have changed while the stream was closed.
      void this.#client.invalidateQueries({ queryKey: webhooksKey(this.#accountId) });
    });
    source.addEventListener('changed', ({ data }) => {
      const { subscription_ids } = JSON.parse(data) as { subscription_ids: string[] };
      this.#refreshChanged(subscription_ids);
    });
    source.addEventListener('error', () => {
      this.#onDisconnect();
      if (source.readyState !== EventSource.CLOSED) return;
      this.#reconnectTimer = setTimeout(() => this.#connect(), RECONNECT_MS);
    });
  }

  #disconnect(): void {
    setLive(false);
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#reconnectTimer);
    for (const timer of this.#throttles.values()) clearTimeout(timer);
    this.#throttles.clear();
  }

  #refreshChanged(webhookIds: readonly string[]): void {
    const webhooks = webhooksKey(this.#accountId);
    this.#refresh([...webhooks, 'list'], LIST_REFRESH_MS);
    this.#refresh(incidentsKey(this.#accountId), LIST_REFRESH_MS);
    this.#refresh(ratesKey(this.#accountId), STATISTICS_REFRESH_MS);
    this.#refresh(activityKey(this.#accountId), LIST_REFRESH_MS);
    for (const webhookId of webhookIds) {
      const statistics = [...logKey({ accountId: this.#accountId, webhookId }), 'statistics'];
      this.#refresh(statistics, STATISTICS_REFRESH_MS);
      void this.#client.invalidateQueries({
        queryKey: [...webhooks, webhookId],
        // Later pages of the log do not move, so they are not refetched. Those with pending rows poll.
        predicate: ({ queryKey, meta }) =>
          meta?.isStatic !== true && statistics.some((part, index) => queryKey[index] !== part),
      });
    }
  }

  /** Refetches immediately, or as soon as the data is `maxAgeMs` old. */
  #refresh(queryKey: readonly unknown[], maxAgeMs: number): void {
    const name = JSON.stringify(queryKey);
    if (this.#throttles.has(name)) return;
    const queries = this.#client.getQueryCache().findAll({ queryKey, type: 'active' });
    if (queries.length === 0) return;
    const updatedAt = Math.max(...queries.map(({ state }) => state.dataUpdatedAt));
    const waitMs = Math.max(0, updatedAt + maxAgeMs - Date.now());
    const refresh = () => {
      this.#throttles.delete(name);
      void this.#client.invalidateQueries({ queryKey });
    };
    this.#throttles.set(name, setTimeout(refresh, waitMs));
  }
}
