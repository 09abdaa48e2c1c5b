import { expect, test } from '@jest/globals';
import { BodyCollector, chunksSeenMax } from '../src/response-body.ts';

function collect(pieces: readonly string[], bytesMax: number): BodyCollector {
  const collector = new BodyCollector(bytesMax);
  for (const piece of pieces) collector.add(Buffer.from(piece));
  return collector;
}

test.each([
  ['has the maximum number of bytes', ['12345', '67890'], false],
  ['has one byte more', ['12345', '678901'], true],
])('a body that %s is truncated only if it exceeds the limit', (_name, pieces, truncated) => {
  const collector = collect(pieces, 10);
  expect(collector.truncated).toBe(truncated);
  expect(collector.bytes().toString()).toBe('1234567890');
});

// A single read may contain thousands of chunks of one byte each.
test.each([
  ['has the maximum number of chunks', chunksSeenMax, false],
  ['has one chunk more', chunksSeenMax + 1, true],
])(
  'a body that %s is truncated only if it exceeds the limit, however few bytes it has',
  (_name, count, truncated) => {
    const collector = collect(new Array(count).fill('x'), 1_000);
    expect(collector.truncated).toBe(truncated);
  },
);
