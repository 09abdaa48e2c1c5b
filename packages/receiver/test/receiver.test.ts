import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  createMemoryStore,
  type DeliveryHeaders,
  deduplicate,
  expressHandler,
  InvalidDeliveryError,
  verify,
  webHandler,
} from '@runhook/receiver';

interface GoldenDelivery {
  name: string;
  body: string;
  bodyBase64: string;
  headers: Record<string, string>;
  secrets: string[];
  nowMs: number;
  genuine: { authorization: boolean; standardWebhooks: boolean };
}

const GOLDEN = new URL('../../contract/golden/deliveries.json', import.meta.url);
const { deliveries } = JSON.parse(await readFile(GOLDEN, 'utf8')) as { deliveries: GoldenDelivery[] };
const [delivery] = deliveries as [GoldenDelivery];
const options = { secrets: delivery.secrets, now: () => delivery.nowMs };

/** Returns the error of `verify`, or null. */
function rejectionOf(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  overrides: object,
): InvalidDeliveryError | null {
  try {
    verify(body, headers, { ...options, ...overrides });
    return null;
  } catch (error) {
    if (error instanceof InvalidDeliveryError) return error;
    throw error;
  }
}

describe.each(deliveries)(
  'the golden delivery "$name"',
  ({ body, bodyBase64, headers, secrets, nowMs, genuine }) => {
    test.each([
      ['authorization', genuine.authorization],
      ['standard-webhooks', genuine.standardWebhooks],
    ] as const)('verified by the scheme %s is genuine: %s', (scheme, isGenuine) => {
      const overrides = { secrets, now: () => nowMs, scheme };
      // A genuine body that is not an event is rejected as such and not as a forgery.
      const codes = [body, Buffer.from(bodyBase64, 'base64')].map(
        (one) => rejectionOf(one, headers, overrides)?.code ?? 'none',
      );
      expect(codes[1]).toBe(codes[0]);
      expect(['none', 'invalid_event'].includes(codes[0] as string)).toBe(isGenuine);
    });
  },
);

interface KeyDelivery extends Omit<GoldenDelivery, 'secrets' | 'genuine'> {
  publicKeys: string[];
  genuine: boolean;
}

const KEY_GOLDEN = new URL('../../contract/golden/ed25519.json', import.meta.url);
const keyDeliveries = JSON.parse(await readFile(KEY_GOLDEN, 'utf8')).deliveries as KeyDelivery[];

test.each(keyDeliveries)(
  'the golden delivery "$name", verified by a public key, is genuine: $genuine',
  ({ body, bodyBase64, headers, publicKeys, nowMs, genuine }) => {
    const overrides = { secrets: undefined, publicKeys, now: () => nowMs };
    for (const one of [body, Buffer.from(bodyBase64, 'base64')]) {
      const code = rejectionOf(one, headers, overrides)?.code ?? 'none';
      expect(['none', 'invalid_event'].includes(code)).toBe(genuine);
    }
  },
);

test('invalid public keys, and public keys with options for secrets, are errors of the program', () => {
  const [{ publicKeys }] = keyDeliveries as [KeyDelivery];
  for (const invalid of [[], '', ['whpk_'], [...publicKeys, 'whsec_MDEyMzQ1'], [undefined as never]])
    expect(() => verify(delivery.body, delivery.headers, { publicKeys: invalid })).toThrow(/whpk_ included/);
  for (const other of [{ secrets: delivery.secrets }, { scheme: 'authorization' as const }])
    expect(() => expressHandler({ publicKeys, ...other }, () => undefined)).toThrow(/replaces secrets/);
});

test('headers are found in any capitalization, in Headers and in plain objects, and a repeated signature header is rejected', () => {
  const { body, headers } = delivery;
  expect(rejectionOf(body, new Headers(headers), {})).toBeNull();
  const capital = { 'Webhook-Id': '', 'WEBHOOK-TIMESTAMP': '', 'Webhook-Signature': '' };
  for (const name of Object.keys(capital))
    capital[name as 'Webhook-Id'] = headers[name.toLowerCase()] as string;
  expect(rejectionOf(body, capital, {})).toBeNull();
  const customHeaders = { 'x-signature': [headers.authorization] } as Record<string, string[]>;
  const overrides = { scheme: 'authorization', signatureHeader: 'X-Signature' };
  expect(rejectionOf(body, customHeaders, overrides)).toBeNull();
  const duplicateHeaders = { 'x-signature': [headers.authorization, headers.authorization] } as Record<
    string,
    string[]
  >;
  expect(rejectionOf(body, duplicateHeaders, overrides)).toMatchObject({ code: 'no_signature', status: 401 });
  expect(rejectionOf(body, {}, {})).toMatchObject({ code: 'no_signature', status: 401 });
});

test('invalid secrets and a parsed body are errors of the program and not rejected deliveries', () => {
  for (const secrets of [[], '', ['whsec_'], 'MDEyMzQ1', undefined as never])
    expect(() => verify(delivery.body, delivery.headers, { secrets })).toThrow(TypeError);
  expect(() => expressHandler({ secrets: [] }, () => undefined)).toThrow('whsec_');
  expect(() => verify(JSON.parse(delivery.body), delivery.headers, options)).toThrow(
    /parsed before.*express\.raw/,
  );
});

describe('a handler', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  const serve = async (listener: RequestListener) => {
    const server = createServer(listener).listen(0, '127.0.0.1');
    closers.push(() => server.close());
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  const post = async (url: string, body = delivery.body) => {
    const response = await fetch(url, { method: 'POST', body, headers: delivery.headers });
    return [response.status, await response.text()];
  };

  test('responds 204 to an event, the reason to a rejected request, and 500 if processing fails', async () => {
    const receivedTypes: string[] = [];
    const onEvent = async ({ eventType }: { eventType: string }) => {
      receivedTypes.push(eventType);
      if (receivedTypes.length > 1) throw new Error('the disk is full');
    };
    const rejectedCodes: string[] = [];
    const onRejected = ({ code }: InvalidDeliveryError) => rejectedCodes.push(code);
    const url = await serve(expressHandler({ ...options, bytesMax: 2_000, onRejected }, onEvent));
    expect(await post(url)).toEqual([204, '']);
    expect(await post(url, `${delivery.body}\n`)).toEqual([401, 'wrong_signature']);
    expect(await post(url, delivery.body.repeat(5))).toEqual([413, 'too_large']);
    expect(await post(url)).toEqual([500, '']);
    expect(receivedTypes).toEqual(['job.run.started', 'job.run.started']);
    expect(rejectedCodes).toEqual(['wrong_signature', 'too_large']);
  });

  test('accepts bytes from a body parser, and explains if a parser has left none', async () => {
    const errors: unknown[] = [];
    const handler = expressHandler(options, () => undefined);
    const url = await serve(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const holdHeader = request.headers['x-held'];
      const bytes = Buffer.concat(chunks);
      Object.assign(request, holdHeader === 'raw' ? { body: bytes } : { body: JSON.parse(String(bytes)) });
      if (holdHeader === 'beside') Object.assign(request, { rawBody: bytes });
      handler(request, response, (error) => {
        errors.push(error);
        response.writeHead(500).end();
      });
    });
    const statuses = [];
    for (const holdHeader of ['raw', 'beside', 'parsed']) {
      const headers = { ...delivery.headers, 'x-held': holdHeader };
      statuses.push((await fetch(url, { method: 'POST', body: delivery.body, headers })).status);
    }
    expect(statuses).toEqual([204, 204, 500]);
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringMatching(/parsed before/) })]);
  });

  test('for the web accepts a Request and returns a Response', async () => {
    const handle = webHandler({ ...options, bytesMax: 2_000 }, () => undefined);
    const request = (body: string) =>
      new Request('http://a/', { method: 'POST', body, headers: delivery.headers });
    expect((await handle(request(delivery.body))).status).toBe(204);
    expect((await handle(request(''))).status).toBe(401);
    expect((await handle(request(delivery.body.repeat(5)))).status).toBe(413);
    const read = request(delivery.body);
    await read.json();
    await expect(handle(read)).rejects.toThrow(/parsed before/);
    const failing = webHandler(options, () => Promise.reject(new Error('the disk is full')));
    await expect(failing(request(delivery.body))).rejects.toThrow('the disk is full');
  });

  test('with deduplicate() responds 503 to a repeat while the event is being processed, and drops a repeat of a processed event', async () => {
    let finish: (error?: Error) => void = () => undefined;
    const startedIds: string[] = [];
    const handle = webHandler(
      options,
      deduplicate(({ eventId }) => {
        startedIds.push(eventId);
        return new Promise<void>((resolve, reject) => {
          finish = (error) => (error ? reject(error) : resolve());
        });
      }),
    );
    const deliver = () =>
      handle(new Request('http://a/', { method: 'POST', body: delivery.body, headers: delivery.headers }));
    const waitForCount = async (count: number) => {
      while (startedIds.length < count) await new Promise(setImmediate);
    };
    const firstDelivery = deliver();
    await waitForCount(1);
    expect((await deliver()).status).toBe(503);
    finish(new Error('the disk is full'));
    await expect(firstDelivery).rejects.toThrow('the disk is full');
    const second = deliver();
    await waitForCount(2);
    finish();
    expect((await second).status).toBe(204);
    expect((await deliver()).status).toBe(204);
    expect(startedIds).toHaveLength(2);
  });
});

test('the default store removes expired and excess events, and lets an event be claimed again once its claim has expired', () => {
  let now = 0;
  const store = createMemoryStore(3, () => now);
  for (const eventId of ['a', 'b', 'c', 'd']) {
    expect(store.claim(eventId, 10)).toBe('claimed');
    store.finish(eventId, 100);
  }
  expect(store.claim('d', 10)).toBe('done');
  expect(store.claim('a', 10)).toBe('claimed');
  expect(store.claim('a', 10)).toBe('in_progress');
  now = 10;
  expect(store.claim('a', 10)).toBe('claimed');
  now = 100;
  expect(store.claim('d', 10)).toBe('claimed');
});
