import { expect, test } from '@jest/globals';
import { createEndpointShares } from '../src/endpoint-shares.ts';

const acquireAll = (shares: ReturnType<typeof createEndpointShares>, endpoint: string) => {
  let taken = 0;
  while (shares.tryAcquire(endpoint)) taken += 1;
  return taken;
};

test('a healthy endpoint has a generous share of its own', () => {
  const shares = createEndpointShares();
  expect(acquireAll(shares, 'a')).toBe(128);
  expect(shares.tryAcquire('b')).toBe(true);
  shares.release('a');
  expect(acquireAll(shares, 'a')).toBe(1);
});

test('failures in a row shrink the share to four, then to none, and a success restores it', () => {
  const shares = createEndpointShares();
  for (let failure = 0; failure < 3; failure += 1) shares.report('a', false);
  expect(acquireAll(shares, 'a')).toBe(4);
  for (let failure = 0; failure < 7; failure += 1) shares.report('a', false);
  for (let place = 0; place < 4; place += 1) shares.release('a');
  expect(acquireAll(shares, 'a')).toBe(0);
  shares.report('a', true);
  expect(acquireAll(shares, 'a')).toBe(128);
});
