// Sends the same call over many connections until the parent sends a message, in a separate process, so that the parent's own
// calls do not wait for it. Waits as long as `Retry-After` requires. Informs the parent of the first response, and at the end of
// the number of responses of each status.
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const { url, token, body, connections, changesNetwork } = JSON.parse(process.argv[2]);
const statuses = {};
let callCount = 0;
const over = new AbortController();

function call() {
  const index = callCount++;
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: body === null ? 'GET' : 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token !== null && { authorization: `Token ${token}` }),
          ...(changesNetwork && { 'x-forwarded-for': `198.${index % 256}.${(index >> 8) % 256}.7` }),
        },
      },
      (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => resolve(response));
      },
    );
    sent.on('error', reject);
    // The index makes each body different.
    sent.end(body?.replace('{index}', index));
  });
}

async function sendUntilOver() {
  while (!over.signal.aborted) {
    const { statusCode, headers } = await call();
    if (Object.keys(statuses).length === 0) process.send('started');
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    const waitMs = Number(headers['retry-after'] ?? 0) * 1_000;
    if (waitMs > 0) await wait(waitMs, undefined, { signal: over.signal }).catch(() => undefined);
  }
}

// The parent may end without a message.
process.on('disconnect', () => process.exit());
process.on('message', async () => {
  over.abort();
  await running;
  process.send(statuses, () => process.exit());
});
const running = Promise.all(Array.from({ length: connections }, sendUntilOver));
