import { expect, test } from '@jest/globals';
import { toLoggedBody } from '@runhook/contract';

test.each([
  ['text unchanged', Buffer.from('ünï'), 'ünï'],
  ['NUL as U+FFFD', Buffer.from('a\0b'), 'a\uFFFDb'],
  ['invalid UTF-8 as U+FFFD', Buffer.from([0x61, 0xff, 0x62]), 'a\uFFFDb'],
  ['an empty body', Buffer.alloc(0), ''],
])('toLoggedBody() stores %s', (_case, bytes, body) => {
  expect(toLoggedBody(bytes, false)).toEqual({ body, truncated: false });
});

test('toLoggedBody() stores up to 16 KiB and reports whether the body was longer', () => {
  expect(toLoggedBody(Buffer.alloc(16_384, 'x'), false)).toEqual({
    body: 'x'.repeat(16_384),
    truncated: false,
  });
  expect(toLoggedBody(Buffer.alloc(16_385, 'x'), false)).toEqual({
    body: 'x'.repeat(16_384),
    truncated: true,
  });
  expect(toLoggedBody(Buffer.from('x'), true).truncated).toBe(true);
});
