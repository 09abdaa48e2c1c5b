import { setTimeout as wait } from 'node:timers/promises';
import { createConnectionError, parseFailure, RunhookError } from './errors.ts';

/** An item of the stream of changes to an account's webhooks (docs/contract.md#changes-as-they-happen). */
export type Change =
  /**
   * The stream is open, for the first time or again; the caller must load the current state, because earlier changes
   * are not sent.
   */
  | { kind: 'connected' }
  /** These webhooks were changed, or an attempt was made for them. */
  | { kind: 'changed'; webhookIds: string[] }
  /** The connection was lost; the client reconnects automatically. */
  | { kind: 'disconnected'; error: RunhookError };

/** The service sends a comment every 20 s, so a stream that is silent for a minute is broken. */
const SILENCE_TIMEOUT_MS = 60_000;
const RECONNECT_MIN_MS = 500;
const RECONNECT_MAX_MS = 30_000;

/**
 * Yields changes until the signal is aborted. Reconnects automatically, because the service ends a stream after 15
 * minutes.
 * @param connect sends one request for the stream
 * @throws RunhookError for a rejection that a retry would not change, such as a 401
 */
export async function* listen(
  connect: (signal: AbortSignal) => Promise<Response>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Change, void> {
  const stopSignal = signal ?? new AbortController().signal;
  let reconnectMs = RECONNECT_MIN_MS;
  while (!stopSignal.aborted) {
    const silence = new AbortController();
    let silenceTimer = setTimeout(() => silence.abort(), SILENCE_TIMEOUT_MS);
    let failure: RunhookError | null = null;
    try {
      const response = await connect(AbortSignal.any([stopSignal, silence.signal]));
      if (!response.ok || response.body === null) throw await parseFailure(response);
      reconnectMs = RECONNECT_MIN_MS;
      yield { kind: 'connected' };
      for await (const ids of parseChanges(response.body, () => {
        clearTimeout(silenceTimer);
        silenceTimer = setTimeout(() => silence.abort(), SILENCE_TIMEOUT_MS);
      }))
        yield { kind: 'changed', webhookIds: ids };
    } catch (error) {
      if (stopSignal.aborted) return;
      failure = error instanceof RunhookError ? error : createConnectionError(error);
      if (isFinal(failure)) throw failure;
    } finally {
      clearTimeout(silenceTimer);
      silence.abort();
    }
    if (failure !== null) yield { kind: 'disconnected', error: failure };
    await wait(Math.max(reconnectMs, 1_000 * (failure?.retryAfterSeconds ?? 0)), undefined, {
      signal: stopSignal,
    }).catch(() => undefined);
    reconnectMs = Math.min(2 * reconnectMs, RECONNECT_MAX_MS);
  }
}

const isFinal = ({ status }: RunhookError) =>
  status >= 400 && status < 500 && status !== 429 && status !== 408;

/** @param onBytes called whenever data arrives, including comments */
async function* parseChanges(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<string[]> {
  let remainder = '';
  let data = '';
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    onBytes();
    const lines = (remainder + text).split('\n');
    remainder = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('data:')) data += line.slice(5);
      if (line !== '' || data === '') continue;
      const { subscription_ids = [] } = JSON.parse(data) as { subscription_ids?: string[] };
      data = '';
      yield subscription_ids;
    }
  }
}
