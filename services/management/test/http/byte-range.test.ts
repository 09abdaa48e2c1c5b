import { expect, test } from '@jest/globals';
import { matchesEtag, parseByteRange } from '../../src/http/byte-range.ts';

test.each([
  ['bytes=0-0', 10, { start: 0, end: 0 }],
  ['bytes=2-5', 10, { start: 2, end: 5 }],
  ['bytes=2-', 10, { start: 2, end: 9 }],
  ['bytes=-3', 10, { start: 7, end: 9 }],
  ['bytes=-30', 10, { start: 0, end: 9 }],
  ['bytes=2-500', 10, { start: 2, end: 9 }],
  ['BYTES= 1-2 ', 10, { start: 1, end: 2 }],
  ['bytes=10-', 10, 'unsatisfiable'],
  ['bytes=-0', 10, 'unsatisfiable'],
  ['bytes=0-0', 0, 'unsatisfiable'],
  ['bytes=-1', 0, 'unsatisfiable'],
  [undefined, 10, null],
  ['', 10, null],
  ['bytes=-', 10, null],
  ['bytes=5-2', 10, null],
  ['bytes=0-1,3-4', 10, null],
  ['items=0-1', 10, null],
  ['bytes=a-b', 10, null],
  ['bytes=99999999999999999999-', 10, null],
])('Range %s of %i bytes', (header, size, expected) => {
  expect(parseByteRange(header, size)).toEqual(expected);
});

test.each([
  [undefined, false],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", "a"', true],
  ['*', true],
  ['"b"', false],
  ['a', false],
])('If-None-Match %s', (header, expected) => {
  expect(matchesEtag(header, '"a"')).toBe(expected);
});
