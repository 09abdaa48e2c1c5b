import { setTimeout as wait } from 'node:timers/promises';
import { noAnswer, RunhookError, refusalOf } from './errors.ts';

/** An item of the stream of changes to an account's webhooks (docs/contract.md#changes-as-they-happen). */
export type Change =
  /**
   * The stream is open, for the first time or again; the caller must load the current state, because earlier changes
   * are not sent.
   */
  | { kind: 'listening' }
  /** These webhooks were changed, or an attempt was made for them. */
  | { kind: 'changed'; webhookIds: string[] }
  /** The connection was lost; the client reconnects automatically. */
  | { kind: 'lost'; error: RunhookError };

/** The service sends a comment every 20 s, so a stream that is silent for a minute is broken. */
const SILENT_MS = 60_000;
const AGAIN_MIN_MS = 500;
const AGAIN_MAX_MS = 30_000;

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
  const given = signal ?? new AbortController().signal;
  let againMs = AGAIN_MIN_MS;
  while (!given.aborted) {
    const dead = new AbortController();
    let alarm = setTimeout(() => dead.abort(), SILENT_MS);
    let lost: RunhookError | null = null;
    try {
      const response = await connect(AbortSignal.any([given, dead.signal]));
      if (!response.ok || response.body === null) throw await refusalOf(response);
      againMs = AGAIN_MIN_MS;
      yield { kind: 'listening' };
      for await (const ids of changesIn(response.body, () => {
        clearTimeout(alarm);
        alarm = setTimeout(() => dead.abort(), SILENT_MS);
      }))
        yield { kind: 'changed', webhookIds: ids };
    } catch (error) {
      if (given.aborted) return;
      lost = error instanceof RunhookError ? error : noAnswer(error);
      if (isFinal(lost)) throw lost;
    } finally {
      clearTimeout(alarm);
      dead.abort();
    }
    if (lost !== null) yield { kind: 'lost', error: lost };
    await wait(Math.max(againMs, 1_000 * (lost?.retryAfterSeconds ?? 0)), undefined, { signal: given }).catch(
      () => undefined,
    );
    againMs = Math.min(2 * againMs, AGAIN_MAX_MS);
  }
}

const isFinal = ({ status }: RunhookError) =>
  status >= 400 && status < 500 && status !== 429 && status !== 408;

/** @param onBytes called whenever data arrives, including comments */
async function* changesIn(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<string[]> {
  let rest = '';
  let data = '';
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    onBytes();
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('data:')) data += line.slice(5);
      if (line !== '' || data === '') continue;
      const { subscription_ids = [] } = JSON.parse(data) as { subscription_ids?: string[] };
      data = '';
      yield subscription_ids;
    }
  }
}
