import { expect, test } from '@jest/globals';
import {
  deliveryHeaders,
  keptAnswerHeaders,
  keptHeaders,
  maskedHeaders,
  toldAnswerHeaders,
  toldHeaders,
} from '../src/index.ts';

const sentAt = new Date('2026-11-23T10:00:00.999Z');
const sent = { eventId: 'wev_1', startedAtMs: sentAt.getTime() };
const headersOf = (more: Partial<Parameters<typeof deliveryHeaders>[0]> = {}) =>
  maskedHeaders(
    deliveryHeaders({
      body: '{}',
      eventId: 'wev_1',
      hmacSecrets: [`whsec_${'A'.repeat(43)}=`],
      sentAt,
      ...more,
    }),
  );

test('of the usual headers the log keeps one value, and tells them all', () => {
  const headers = headersOf();
  const kept = keptHeaders(headers, sent);
  expect(kept).toBe(headers['user-agent']);
  expect(Object.entries(toldHeaders(kept, sent))).toEqual(Object.entries(headers));
  expect(toldHeaders('Runhook/9.9.9', sent)).toEqual({ ...headers, 'user-agent': 'Runhook/9.9.9' });
});

test.each([
  ['headers of the subscriber', headersOf({ ownHeaders: { 'X-Team': 'a' } })],
  ['a signature in another header', headersOf({ signatureHeader: 'X-Signature' })],
  ['a trace', { ...headersOf(), traceparent: '00-1' }],
  ['another second', headersOf({ sentAt: new Date(sentAt.getTime() - 1_000) })],
  ['fewer', { 'user-agent': 'Runhook/0.1.0' }],
  ['none', {}],
])('others are kept as they are: %s', (_, headers) => {
  const kept = keptHeaders(headers, sent);
  expect(kept).toEqual(headers);
  expect(toldHeaders(kept, sent)).toEqual(headers);
});

test('what opens anything is kept of none, usual or not', () => {
  const delivery = {
    body: '{}',
    eventId: 'wev_1',
    hmacSecrets: [`whsec_${'A'.repeat(43)}=`] as const,
    sentAt,
  };
  const own = deliveryHeaders({ ...delivery, ownHeaders: { 'X-Gateway-Key': 'opens' } });
  expect(keptHeaders(own, sent)).toEqual(maskedHeaders(own));
  expect(JSON.stringify(keptHeaders(own, sent))).not.toContain(own.authorization);
  expect(keptHeaders(deliveryHeaders(delivery), sent)).toBe(own['user-agent']);
});

const DATE = 'Mon, 23 Nov 2026 10:00:00 GMT';

test.each([
  ['usual ones', { date: DATE, connection: 'keep-alive', 'keep-alive': 'timeout=5' }, [0, 1, 3]],
  [
    'a usual name with another value',
    { 'keep-alive': 'timeout=60', connection: 'close' },
    [3, 'timeout=60', 2],
  ],
  ['a later second', { date: 'Mon, 23 Nov 2026 10:00:02 GMT' }, [0, '2']],
  ['a clock that is behind', { date: 'Mon, 23 Nov 2026 09:59:59 GMT', server: 'nginx' }, [0, '-1', 13]],
  ['a date of another form', { date: '2026-11-23T10:00:00Z' }, [-1, 'date', '2026-11-23T10:00:00Z']],
  ['no date at all', { date: '0' }, [-1, 'date', '0']],
  ['a name of its own behind a usual one', { connection: 'close', 'x-own': 'a' }, [2, -1, 'x-own', 'a']],
  ['an empty value', { 'cf-ray': '', 'x-own': '', date: DATE }, [28, '', -1, 'x-own', '', 0]],
  ['a name that objects have', { constructor: 'a' }, [-1, 'constructor', 'a']],
  ['none', {}, []],
])('of an answer the log keeps the places of usual headers: %s', (_, headers, kept) => {
  expect(keptAnswerHeaders(headers, sent.startedAtMs)).toEqual(kept);
  const told = toldAnswerHeaders(kept, sent.startedAtMs);
  expect(Object.entries(told)).toEqual(Object.entries(headers));
});

test('headers of an answer that 0.1.0 kept are told as they are', () => {
  expect(toldAnswerHeaders({ date: DATE, a: 'b' }, 0)).toEqual({ date: DATE, a: 'b' });
});
