import { expect, test } from '@jest/globals';
import { deliveryHeaders, maskHeaders } from '../src/index.ts';

test('the log contains the names of all request headers but no value of a signature or a custom header', () => {
  const headers = deliveryHeaders({
    body: '{}',
    eventId: 'wev_1',
    hmacSecrets: [`whsec_${'A'.repeat(43)}=`],
    sentAt: new Date('2026-11-23T10:00:00.999Z'),
    customHeaders: { 'X-Gateway-Key': 'opens' },
  });
  expect(maskHeaders({ ...headers, traceparent: '00-1' })).toEqual({
    'content-type': 'application/json',
    'user-agent': headers['user-agent'],
    authorization: '***',
    'webhook-id': 'wev_1',
    'webhook-timestamp': headers['webhook-timestamp'],
    'webhook-signature': '***',
    'x-gateway-key': '***',
    traceparent: '00-1',
  });
});
