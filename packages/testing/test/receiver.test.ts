import { request as sendRequest } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Receiver, startReceiver } from '../src/index.ts';

let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

test('a request is recorded with its path, headers and the exact bytes of its body', async () => {
  const body = Buffer.from([0x00, 0xff, 0x80, 0x0d, 0x0a, 0xc3]);
  const before = Date.now();
  await post('/a/b?c=d', { body, headers: { 'X-Id': '7' } });
  const [received] = await receiver.waitFor(1);
  expect(received).toMatchObject({ method: 'POST', path: '/a/b?c=d', headers: { 'x-id': '7' } });
  expect(received?.body.equals(body)).toBe(true);
  expect(received?.receivedAt).toBeGreaterThanOrEqual(before);
});

test('a response is as the test specifies: a status, one response, or one per request', async () => {
  receiver.respondWith(410);
  expect((await post('/')).status).toBe(410);
  receiver.respondWith({ status: 201, headers: { 'x-answer': 'yes' }, body: 'made' });
  const customResponse = await post('/');
  expect([
    customResponse.status,
    customResponse.headers.get('x-answer'),
    await customResponse.text(),
  ]).toEqual([201, 'yes', 'made']);
  receiver.respondWith((request, index) => ({ status: 200 + index, body: request.path }));
  const third = await post('/third');
  expect([third.status, await third.text()]).toEqual([202, '/third']);
});

test('a promise delays the response until the test resolves it', async () => {
  const pendingResponse = deferred();
  receiver.respondWith(async () => {
    await pendingResponse.promise;
    return { status: 204 };
  });
  const response = post('/held');
  await receiver.waitFor(1);
  pendingResponse.resolve();
  expect((await response).status).toBe(204);
});

test('a response with delayMs is late, and a response with drip arrives in pieces', async () => {
  receiver.respondWith({ delayMs: 120 });
  const startedAt = performance.now();
  await post('/');
  expect(performance.now() - startedAt).toBeGreaterThan(100);

  receiver.respondWith({ body: 'abcdef', drip: { bytes: 2, intervalMs: 30 } });
  const response = await post('/');
  const chunks: string[] = [];
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    chunks.push(Buffer.from(chunk).toString());
  }
  expect(chunks).toEqual(['ab', 'cd', 'ef']);
});

test('close() ends requests without a response and endless responses', async () => {
  receiver.respondWith((_request, index) =>
    index === 0 ? { neverResponds: true } : { drip: { bytes: 1, intervalMs: 10 } },
  );
  const unansweredRequest = post('/').then(
    () => 'answered',
    () => 'cut off',
  );
  await receiver.waitFor(1);
  const drippingResponse = await post('/');
  const rest = drippingResponse.text().then(
    () => 'complete',
    () => 'cut off',
  );
  await receiver.close();
  expect(await unansweredRequest).toBe('cut off');
  expect(await rest).toBe('cut off');
});

test('a raw handler can break the response, and the request is recorded nevertheless', async () => {
  receiver.handleWith((request, response) => {
    request.once('end', () => response.destroy());
  });
  await expect(post('/reset', { body: 'bytes' })).rejects.toThrow();
  const [received] = await receiver.waitFor(1);
  expect(received?.body.toString()).toBe('bytes');
});

test('a request that is cut off is not recorded and does not harm the receiver', async () => {
  await new Promise<void>((resolve) => {
    const request = sendRequest(receiver.url, { method: 'POST', headers: { 'content-length': '100' } });
    request.on('error', () => resolve());
    request.write('half', () => request.destroy(new Error('gives up')));
  });
  await post('/whole');
  expect(receiver.requests.map(({ path }) => path)).toEqual(['/whole']);
});

test('waitFor() resolves at the expected request, with the requests that match', async () => {
  const third = receiver.waitFor(3);
  const special = receiver.waitFor(({ path }) => path === '/special');
  await post('/1');
  await post('/special');
  await post('/3');
  expect(await third).toHaveLength(3);
  expect((await special).map(({ path }) => path)).toEqual(['/special']);
});

test('waitUntilDisconnected() resolves when the last connection is closed', async () => {
  await receiver.waitUntilDisconnected();
  receiver.respondWith((_request, index) => (index === 0 ? { neverResponds: true } : { status: 200 }));
  const pendingResponse = sendRequest(receiver.url, { agent: false }).on('error', () => undefined);
  pendingResponse.end();
  await receiver.waitFor(1);
  const disconnected = receiver.waitUntilDisconnected().then(() => 'gone');
  const secondResponse = new Promise((resolve) => {
    sendRequest(receiver.url, { agent: false }, (response) =>
      response.resume().on('end', () => resolve('answered')),
    ).end();
  });
  expect(await Promise.race([disconnected, secondResponse])).toBe('answered');
  pendingResponse.destroy();
  expect(await disconnected).toBe('gone');
});

test('waitFor() lists the requests that arrived if it times out', async () => {
  await post('/only', { body: 'its body' });
  const failure = receiver.waitFor(2, { timeoutMs: 50 });
  await expect(failure).rejects.toThrow(/2 request\(s\); 1 arrived[\s\S]*POST \/only 8 bytes its body/);
});

test('waitFor() rejects with the error that its predicate throws', async () => {
  const failure = receiver.waitFor(() => {
    throw new TypeError('in the predicate');
  });
  await Promise.all([expect(failure).rejects.toThrow('in the predicate'), post('/')]);
});

test('a receiver can restart on its port', async () => {
  await receiver.close();
  receiver = await startReceiver({ port: receiver.port, respond: 503 });
  expect((await post('/')).status).toBe(503);
});

function post(
  path: string,
  options: { body?: string | Buffer; headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(receiver.url + path, { method: 'POST', ...options });
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
