import { setTimeout as pause } from 'node:timers/promises';
import { type Client, RunhookError, type Schemas } from '@runhook/client';

export type FeedEvent = Schemas['DeliveryPayload'];

const FEED_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/events';
const WAIT_SECONDS = 20;
const PAGE_SIZE = 100;
const RETRY_MS = 2_000;

/** Returns the cursor after the newest event. */
export async function latestCursor(client: Client, webhookId: string): Promise<string> {
  const query = { after: 'latest', limit: 1 };
  const { extra } = await client.page(FEED_PATH, { path: { webhook_id: webhookId }, query });
  return extra.pagination.next_after;
}

/**
 * Yields each new event of a webhook until the signal is aborted. After an outage of the service it continues where it
 * was; after a restore of the database, events may repeat. Throws any other error of the API.
 * @param onNote receives sentences for the user
 */
export async function* followFeed(
  client: Client,
  {
    webhookId,
    stopping,
    onNote,
  }: { webhookId: string; stopping: AbortSignal; onNote: (text: string) => Promise<void> },
  cursor: string,
): AsyncGenerator<FeedEvent, void> {
  let after = cursor;
  let isDisconnected = false;
  while (!stopping.aborted) {
    const query = { after, limit: PAGE_SIZE, wait: WAIT_SECONDS };
    try {
      const parts = { path: { webhook_id: webhookId }, query, signal: stopping };
      const { data, extra } = await client.page(FEED_PATH, parts);
      if (isDisconnected) await onNote('Reconnected.');
      isDisconnected = false;
      yield* data;
      after = extra.pagination.next_after;
    } catch (error) {
      if (stopping.aborted) return;
      const nextAfter = nextAfterOf(error);
      if (nextAfter === null && !isTransient(error)) throw error;
      if (!isDisconnected) await onNote(noteOf(error));
      if (nextAfter === null) {
        isDisconnected = true;
        await pause(RETRY_MS, undefined, { signal: stopping }).catch(() => undefined);
      } else after = nextAfter;
    }
  }
}

function nextAfterOf(error: unknown): string | null {
  if (!(error instanceof RunhookError) || error.status !== 410) return null;
  return (error.data as Schemas['FeedGone']['data']).next_after;
}

const isTransient = (error: unknown) =>
  error instanceof RunhookError && (error.status === 0 || error.status === 429 || error.status >= 500);

function noteOf(error: unknown): string {
  const { message, status } = error as RunhookError;
  return status === 410 ? message : `${message} Reconnecting.`;
}
