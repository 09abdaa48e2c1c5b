// Sends the same call over many connections until the parent disconnects, in a separate process, so that the parent's own calls
// do not wait for it. Waits as long as `Retry-After` requires. Informs the
// parent of the first response, and at the end of the number of responses of each status.
import { request } from 'node:http';

const { url, token, body, connections } = JSON.parse(process.argv[2]);
const statuses = {};
let isOver = false;

function call() {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: body === null ? 'GET' : 'POST',
        headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
      },
      (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => resolve(response));
      },
    );
    sent.on('error', reject);
    sent.end(body ?? undefined);
  });
}

async function sendUntilOver() {
  while (!isOver) {
    const { statusCode, headers } = await call();
    if (Object.keys(statuses).length === 0) process.send('started');
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    const waitMs = Number(headers['retry-after'] ?? 0) * 1_000;
    if (waitMs > 0 && !isOver) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

process.on('message', async () => {
  isOver = true;
  await running;
  process.send(statuses, () => process.exit());
});
const running = Promise.all(Array.from({ length: connections }, sendUntilOver));
