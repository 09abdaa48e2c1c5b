import { expect, test } from '@jest/globals';
import { deliveryHeaders, keptHeaders, maskedHeaders, toldHeaders } from '../src/index.ts';

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
