import { expect, test } from '@jest/globals';
import { idRangesWithPrefix } from '../../src/jobs/job-list.ts';

const BIGINT_MAX = 2n ** 63n - 1n;
const isInRanges = (text: string, id: bigint) =>
  idRangesWithPrefix(text).some(({ gte, lte }) => gte <= id && id <= lte);

const IDS = [
  1n,
  7n,
  9n,
  10n,
  12n,
  19n,
  99n,
  100n,
  120n,
  129n,
  130n,
  1200n,
  1299n,
  123456789n,
  BIGINT_MAX - 1n,
  BIGINT_MAX,
];

test('idRangesWithPrefix returns ranges with exactly the ids whose digits start with the text', () => {
  for (const id of IDS) {
    for (const prefix of [
      '1',
      '12',
      '13',
      '120',
      '9',
      '92',
      '922',
      '9223372036854775807',
      ...IDS.map(String),
    ]) {
      expect([id, prefix, isInRanges(prefix, id)]).toEqual([id, prefix, String(id).startsWith(prefix)]);
    }
  }
});

test('idRangesWithPrefix returns no ranges for text that no id starts with', () => {
  for (const text of ['0', '01', '-1', '1.5', 'x', '1x', '99999999999999999999']) {
    expect(idRangesWithPrefix(text)).toEqual([]);
  }
});

test('idRangesWithPrefix returns ranges up to the maximum of a bigint', () => {
  expect(idRangesWithPrefix(String(BIGINT_MAX))).toEqual([{ gte: BIGINT_MAX, lte: BIGINT_MAX }]);
  expect(idRangesWithPrefix('9').at(-1)).toEqual({ gte: 9n * 10n ** 18n, lte: BIGINT_MAX });
});
