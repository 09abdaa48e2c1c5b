import { createServer } from 'node:http';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/egress.ts';
import { type Listening, listen, NO_DEADLINE_MS } from './listening.ts';

/*
 * Most of what a request allocates is dead when it ends, and costs nothing then: a collection of the young copies what lives. If
 * something keeps it until the next full collection, everything is copied twice (docs/adr/0050-nothing-outlives-its-request.md).
 */

const REQUESTS = 2_000;
const AT_ONCE = 16;
/** Two and a half times less than what was kept when requests were kept, two times more than is kept now. */
const KEPT_BYTES_MAX = 9_000;

let server: Listening;
let egress: Egress;
let collect: (options?: { type: 'minor' }) => void;

beforeAll(async () => {
  setFlagsFromString('--expose-gc');
  collect = runInNewContext('gc');
  server = await listen(createServer((_request, response) => void response.end('ok')));
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS });
});

afterAll(async () => {
  egress.close();
  await server.close();
});

async function postMany(): Promise<void> {
  const url = `http://127.0.0.1:${server.port}/`;
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    const posts = Array.from({ length: AT_ONCE }, () => egress.post({ url, headers: {}, body: '{}' }));
    for (const { error } of await Promise.all(posts)) expect(error).toBeNull();
    if (sent % (10 * AT_ONCE) === 0) collect({ type: 'minor' });
  }
}

const oldBytes = () =>
  getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')?.space_used_size ?? Number.NaN;

test('collections of the young find next to nothing of requests that have ended', async () => {
  await postMany();
  collect();
  const before = oldBytes();
  await postMany();
  expect((oldBytes() - before) / REQUESTS).toBeLessThan(KEPT_BYTES_MAX);
});
