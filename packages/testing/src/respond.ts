import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ReceiverAnswer } from './receiver.ts';

/** Sends one answer; ends early, without an error, when the receiver closes or the sender has gone. */
export async function respond(
  response: ServerResponse,
  answer: ReceiverAnswer,
  closing: AbortSignal,
): Promise<void> {
  const { status = 200, headers = {}, body = '', delayMs = 0, drip, never } = answer;
  if (never) return;
  if (delayMs > 0 && !(await pause(delayMs, closing))) return;
  response.writeHead(status, headers);
  if (drip === undefined) {
    response.end(body);
    return;
  }

  response.flushHeaders();
  const bytes = Buffer.from(body);
  for (let sent = 0; bytes.length === 0 || sent < bytes.length; sent += drip.bytes) {
    if (!(await pause(drip.intervalMs, closing)) || response.destroyed) return;
    response.write(
      bytes.length === 0 ? Buffer.alloc(drip.bytes, ' ') : bytes.subarray(sent, sent + drip.bytes),
    );
  }
  response.end();
}

/** False when the receiver was closed meanwhile. */
function pause(milliseconds: number, closing: AbortSignal): Promise<boolean> {
  return wait(milliseconds, undefined, { signal: closing }).then(
    () => true,
    () => false,
  );
}
