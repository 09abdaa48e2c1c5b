import { expect, test } from '@jest/globals';
import { parseCidrs } from '../src/index.ts';

test('parseCidrs() parses a list of ranges, skips blank items, and takes an address without a prefix for a range of one address', () => {
  expect(parseCidrs('10.0.0.0/8, ::1 ,, fd00::/8,127.0.0.1/32,')).toEqual([
    '10.0.0.0/8',
    '::1/128',
    'fd00::/8',
    '127.0.0.1/32',
  ]);
  expect(parseCidrs('')).toEqual([]);
  expect(parseCidrs('0.0.0.0/0,::/0')).toEqual(['0.0.0.0/0', '::/0']);
});

test.each([
  '10.0.0.0/33',
  '::/129',
  'localhost',
  '10/8',
  '10.0.0/8',
  '010.0.0.0/8',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  '10.0.0.0/-1',
  '10.0.0.0/8x',
  'fe80::1%eth0/64',
  '/8',
])('parseCidrs() names the invalid item %s in its error', (item) => {
  expect(() => parseCidrs(`127.0.0.1, ${item}`)).toThrow(`"${item}"`);
});
