import { createServer } from 'node:http';
import { createEgress } from '@runhook/egress/client';

/** For kept-memory.test.ts, which reads what V8 tells of its collections meanwhile. */

const POSTS = 10_000;
const AT_ONCE = 32;

const server = createServer((_request, response) => void response.end('ok'));
await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: 600_000 });
const url = `http://127.0.0.1:${port}/`;
let left = POSTS;

async function post() {
  while (left-- > 0) {
    const { error } = await egress.post({ url, headers: {}, body: '{}' });
    if (error) throw new Error(error.message);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, post));
egress.close();
server.close();
