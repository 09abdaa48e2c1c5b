import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { compressText, selectEncoding } from '../src/index.ts';

const LONG = 'é'.repeat(5_000);

describe('the encoding of a response', () => {
  test.each([
    ['gzip', 'gzip'],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['GZIP;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0, *', 'gzip'],
    ['*', 'br'],
    ['*;q=0.1 , gzip ; q=0.3', 'gzip'],
    ['identity', null],
    ['gzip;q=0', null],
    ['*;q=0', null],
    ['deflate, x-gzip-2', null],
    ['', null],
  ])('for Accept-Encoding: %s is %s', (acceptEncoding, encoding) => {
    expect(selectEncoding(LONG, acceptEncoding)).toBe(encoding);
  });

  test('is none without the header, and for a short text', () => {
    expect(selectEncoding(LONG, undefined)).toBeNull();
    expect(selectEncoding('{"data":{}}', 'gzip')).toBeNull();
  });

  test('is that of the compressed text', async () => {
    expect(gunzipSync(await compressText(LONG, 'gzip')).toString()).toBe(LONG);
    expect(brotliDecompressSync(await compressText(LONG, 'br')).toString()).toBe(LONG);
  });
});
