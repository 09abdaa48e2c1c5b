import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { ownUrl } from '../served-page.ts';
import { activityKey } from './activity.ts';
import { logKey } from './deliveries.ts';
import { incidentsKey, ratesKey } from './incidents.ts';
import { isLive, setLive } from './live.ts';
import { webhooksKey } from './subscriptions.ts';

/** Minimum age of expensive queries before a change refreshes them. */
const LIST_MS = 5_000;
const STATISTICS_MS = 15_000;
/** Wait before reconnecting after an error response: the browser does not reconnect an `EventSource` after one. */
const AGAIN_MS = 60_000;

/**
 * Subscribes to changes of the account's webhooks while the page is visible, and refetches the queries that they affect.
 * @param webhookId webhook whose log is shown; null if none is
 */
export function useChanges(accountId: number, webhookId: string | null): void {
  const client = useQueryClient();
  useEffect(() => {
    const changes = new Changes(client, accountId, webhookId);
    return () => changes.close();
  }, [client, accountId, webhookId]);
}

class Changes {
  readonly #client: QueryClient;
  readonly #accountId: number;
  readonly #url: string;
  readonly #throttles = new Map<string, ReturnType<typeof setTimeout>>();
  #source: EventSource | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(client: QueryClient, accountId: number, webhookId: string | null) {
    this.#client = client;
    this.#accountId = accountId;
    const of = webhookId === null ? '' : `?subscription_id=${encodeURIComponent(webhookId)}`;
    this.#url = ownUrl(`api/v3/accounts/${accountId}/webhooks/changes${of}`);
    document.addEventListener('visibilitychange', this.#onSeen);
    window.addEventListener('offline', this.#onLost);
    this.#onSeen();
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#onSeen);
    window.removeEventListener('offline', this.#onLost);
    this.#leave();
  }

  readonly #onSeen = (): void => {
    if (document.visibilityState === 'visible') this.#listen();
    else this.#leave();
  };

  /** Makes the pages poll. The first requests are made immediately, and also report other problems. */
  readonly #onLost = (): void => {
    if (!isLive()) return;
    setLive(false);
    void this.#client.invalidateQueries({ queryKey: webhooksKey(this.#accountId) });
  };

  #listen(): void {
    this.#leave();
    const source = new EventSource(this.#url);
    this.#source = source;
    source.addEventListener('open', () => {
      setLive(true);
      // Refetches what changed while the stream was closed.
      void this.#client.invalidateQueries({ queryKey: webhooksKey(this.#accountId) });
    });
    source.addEventListener('changed', ({ data }) => {
      const { subscription_ids } = JSON.parse(data) as { subscription_ids: string[] };
      this.#hear(subscription_ids);
    });
    source.addEventListener('error', () => {
      this.#onLost();
      if (source.readyState !== EventSource.CLOSED) return;
      this.#again = setTimeout(() => this.#listen(), AGAIN_MS);
    });
  }

  #leave(): void {
    setLive(false);
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#again);
    for (const timer of this.#throttles.values()) clearTimeout(timer);
    this.#throttles.clear();
  }

  #hear(webhookIds: readonly string[]): void {
    const webhooks = webhooksKey(this.#accountId);
    this.#refresh([...webhooks, 'list'], LIST_MS);
    this.#refresh(incidentsKey(this.#accountId), LIST_MS);
    this.#refresh(ratesKey(this.#accountId), STATISTICS_MS);
    this.#refresh(activityKey(this.#accountId), LIST_MS);
    for (const webhookId of webhookIds) {
      const statistics = [...logKey({ accountId: this.#accountId, webhookId }), 'statistics'];
      this.#refresh(statistics, STATISTICS_MS);
      void this.#client.invalidateQueries({
        queryKey: [...webhooks, webhookId],
        // Later pages of the log do not move, so they are not refetched. Those with pending rows poll.
        predicate: ({ queryKey, meta }) =>
          meta?.isStill !== true && statistics.some((part, index) => queryKey[index] !== part),
      });
    }
  }

  /** Refetches immediately, or as soon as the data is `goodForMs` old. */
  #refresh(queryKey: readonly unknown[], goodForMs: number): void {
    const name = JSON.stringify(queryKey);
    if (this.#throttles.has(name)) return;
    const queries = this.#client.getQueryCache().findAll({ queryKey, type: 'active' });
    if (queries.length === 0) return;
    const updatedAt = Math.max(...queries.map(({ state }) => state.dataUpdatedAt));
    const waitMs = Math.max(0, updatedAt + goodForMs - Date.now());
    const refresh = () => {
      this.#throttles.delete(name);
      void this.#client.invalidateQueries({ queryKey });
    };
    this.#throttles.set(name, setTimeout(refresh, waitMs));
  }
}
