import http, { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { createEvent, deliveryHeaders, EVENT_TYPE_TABLE, EVENT_TYPES, sampleEvent } from '@runhook/contract';
import { createEgress } from '@runhook/egress/client';
import { haveSameClass } from '@runhook/testing';

/*
 * What is made for each event has the hidden class of what was made for the one before (docs/adr/0059-no-class-of-its-own.md), once its
 * code has run some times: V8 copies in another way before it has seen what is copied.
 */

const TIMES = 50;
const SEVERAL = Array.from({ length: TIMES }, (_, number) => number);

const headersOf = (body: string, ownHeaders = {}) =>
  deliveryHeaders({ body, eventId: 'wev_1', hmacSecrets: ['secret'], sentAt: new Date(), ownHeaders });

test('the requests of an egress, and their headers, have one hidden class', async () => {
  const server = createServer((_request, response) => void response.end()).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: 600_000 });
  const request = jest.spyOn(http, 'request');
  try {
    for (const number of SEVERAL) {
      const body = `${number}`;
      const { error } = await egress.post({ url, headers: headersOf(body), body });
      expect(error).toBeNull();
    }
    const [one, other] = request.mock.calls.slice(-2).map(([options]) => options as http.RequestOptions);
    expect(haveSameClass(one as object, other as object)).toBe(true);
    expect(haveSameClass(one?.headers as object, other?.headers as object)).toBe(true);
  } finally {
    request.mockRestore();
    egress.close();
    await new Promise((resolve) => server.close(resolve));
  }
});

test('the headers of deliveries with headers of their own have one hidden class', () => {
  const [one, other] = SEVERAL.map((number) => headersOf('{}', { 'X-Tenant': `${number}` })).slice(-2);
  expect(haveSameClass(one as object, other as object)).toBe(true);
});

test.each(EVENT_TYPES)('events of the type %s have one hidden class, and so has their data', (eventType) => {
  const now = new Date();
  const { data } = sampleEvent(eventType, { accountId: 1, eventId: 'wev_1', now });
  const { time } = EVENT_TYPE_TABLE[eventType];
  // Without the time, which is added.
  const run = Object.fromEntries(Object.entries(data).filter(([name]) => name !== time)) as typeof data;
  const made = SEVERAL.map((number) =>
    createEvent(
      eventType,
      { eventId: `wev_${number}`, accountId: number, timestamp: now.toISOString() },
      run,
      () => now.toISOString(),
    ),
  );
  const [one, other] = made.slice(-2);
  expect(haveSameClass(one as object, other as object)).toBe(true);
  expect(haveSameClass(one?.data as object, other?.data as object)).toBe(true);
});

test('objects that are made in two ways have not', () => {
  expect(haveSameClass({ one: 1, other: 2 }, { other: 2, one: 1 })).toBe(false);
});
