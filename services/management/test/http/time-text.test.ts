import { expect, test } from '@jest/globals';
import { TIMESTAMP } from '../../src/http/openapi/field-schemas.ts';
import { microsFromText } from '../../src/http/query-parameters.ts';

test.each([
  ['1795168800123456', '1795168800123456'],
  ['0', '0'],
  ['0005', '5'],
  ['2026-11-20T10:00:00.123456Z', '1795168800123456'],
  ['2026-11-20T10:00:00.123456789Z', '1795168800123456'],
  ['2026-11-20T10:00:00.1Z', '1795168800100000'],
  ['2026-11-20T10:00:00Z', '1795168800000000'],
  ['2026-11-20T10:00Z', '1795168800000000'],
  ['2026-11-20T12:30:00+02:30', '1795168800000000'],
  ['2026-11-20', '1795132800000000'],
])('the timestamp %s is parsed as %s, as documented', (text, micros) => {
  expect(microsFromText(text)).toBe(micros);
  expect(text).toMatch(new RegExp(TIMESTAMP.pattern ?? ''));
});

test.each([['2026-02-30'], ['1970-01-01T00:00:00+01:00']])(
  '%j matches the documented pattern but is not a timestamp',
  (text) => {
    expect(text).toMatch(new RegExp(TIMESTAMP.pattern ?? ''));
    expect(microsFromText(text)).toBeNull();
  },
);

test.each([
  '',
  'now',
  '-1',
  '1.5',
  '1e15',
  ' 5',
  '9'.repeat(18),
  '9'.repeat(30),
  '2026-13-01',
  '2026-11-20T10:00:00',
  '2026-11-20T25:00:00Z',
  '2026-11-20 10:00:00Z',
  '2026-11-20T10:00:00+99:00',
  '1960-01-01',
  '20-11-2026',
])('%j is not a timestamp, as documented', (text) => {
  expect(text).not.toMatch(new RegExp(TIMESTAMP.pattern ?? ''));
  expect(microsFromText(text)).toBeNull();
});
