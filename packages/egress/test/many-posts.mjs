import { createEgress } from '@runhook/egress/client';

/** For kept-memory.test.ts, which has the endpoint and reads what V8 tells of its collections meanwhile. */

const AT_ONCE = 32;

const [url = '', posts = ''] = process.argv.slice(2);
const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: 600_000 });
let left = Number(posts);

async function post() {
  while (left-- > 0) {
    const { error } = await egress.post({
      url,
      headers: { 'content-type': 'application/json', authorization: 'signature' },
      body: '{}',
    });
    if (error) throw new Error(error.message);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, post));
egress.close();
