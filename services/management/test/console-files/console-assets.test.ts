import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chooseEncoding } from '../../src/console-files/routes.ts';
import { failure, type Harness, startHarness } from '../harness.ts';
import {
  BROWSER,
  type BuiltConsole,
  createBuiltConsole,
  rawRequest,
  SCRIPT,
  SCRIPT_PATH,
} from './console-fixture.ts';

let builtConsoleFolder: BuiltConsole;
let harness: Harness;

beforeAll(async () => {
  builtConsoleFolder = await createBuiltConsole();
  harness = await startHarness({}, { consoleFolder: builtConsoleFolder.folder });
});

afterAll(async () => {
  await harness.close();
  await builtConsoleFolder.remove();
});

const request = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  rawRequest(harness.origin, path, { headers, method });

test('browsers cache a hashed asset for a year and revalidate the icon', async () => {
  const script = await request(SCRIPT_PATH);
  expect(script).toMatchObject({ status: 200, text: SCRIPT });
  expect(script.headers['cache-control']).toBe('public, max-age=31536000, immutable');
  expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect(script.headers['x-content-type-options']).toBe('nosniff');
  const icon = await request('/favicon.svg');
  expect(icon.headers['cache-control']).toBe('no-cache');
  expect(icon.headers['content-type']).toBe('image/svg+xml');
});

test('an asset is sent in an encoding that the client accepts, if that is smaller, with Vary', async () => {
  for (const encoding of ['br', 'gzip']) {
    const { headers, body, text } = await request(SCRIPT_PATH, { 'accept-encoding': encoding });
    expect(headers).toMatchObject({ 'content-encoding': encoding, 'content-length': String(body.length) });
    expect(text).toBe(SCRIPT);
    expect(body.length).toBeLessThan(SCRIPT.length / 10);
  }
  for (const path of [SCRIPT_PATH, '/assets/font-3.woff2', '/assets/tiny-2.js']) {
    expect((await request(path)).headers).toMatchObject({ vary: 'Accept-Encoding' });
    expect((await request(path)).headers['content-encoding']).toBeUndefined();
  }
  // These files are already compressed, or shorter than their compressed form.
  for (const path of ['/assets/font-3.woff2', '/assets/tiny-2.js'])
    expect((await request(path, { 'accept-encoding': 'br' })).headers['content-encoding']).toBeUndefined();
});

test('the Brotli file that the build made of an asset is sent for the path of the asset only', async () => {
  expect((await request('/assets/style-1.css', { 'accept-encoding': 'br' })).text).toBe('made by the build');
  expect((await request('/assets/style-1.css', { 'accept-encoding': 'gzip' })).text).toMatch(
    /^a\{color:red\}/,
  );
  expect((await request('/assets/style-1.css.br')).status).toBe(404);
});

test('HEAD of an asset returns the headers of GET without a body, and POST is a 405', async () => {
  const compressed = await request(SCRIPT_PATH, { 'accept-encoding': 'br' });
  const head = await request(SCRIPT_PATH, { 'accept-encoding': 'br' }, 'HEAD');
  expect(head.body).toHaveLength(0);
  for (const name of ['content-length', 'content-encoding', 'content-type', 'cache-control', 'vary'])
    expect([name, head.headers[name]]).toEqual([name, compressed.headers[name]]);
  const postResponse = await request(SCRIPT_PATH, {}, 'POST');
  expect(postResponse).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
});

test('only public files of the build are served, regardless of tricks in the path', async () => {
  const paths = [
    '/assets/../secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/assets/%2e%2e/%2e%2e/secret.txt',
    '/assets/..%5c..%5csecret.txt',
    '/..%2fsecret.txt',
    '/assets/%00',
    '/assets/%E0%A4%A',
    '/assets/',
    '/assets',
    '/assets/index-00000000.js',
    `${SCRIPT_PATH}/`,
    '/.built-from',
    '//assets/index-CPp8eL0p.js',
    '/ASSETS/index-CPp8eL0p.js',
  ];
  for (const path of paths) {
    const { status, text } = await request(path);
    expect({ path, status, json: JSON.parse(text) }).toEqual({
      path,
      status: 404,
      json: failure(404, 'Not found.'),
    });
    expect((await request(path, BROWSER)).text).not.toMatch(/not for anyone|a hash/);
  }
});

test('a missing asset is a 404 and not the page of the console, also for a browser', async () => {
  for (const path of ['/assets/index-00000000.js', '/assets/', '/assets/..%2f..%2fsecret.txt']) {
    const { status, headers } = await request(path, BROWSER);
    expect([path, status, headers['content-type']]).toEqual([path, 404, 'application/json; charset=utf-8']);
  }
});

describe('the encoding of an asset', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate', 'gzip'],
    ['br;q=0.5, gzip', 'gzip'],
    ['BR', 'br'],
    ['*', 'br'],
    ['*;q=0', 'identity'],
    ['br;q=0, *', 'gzip'],
    ['identity, gzip;q=0.5', 'identity'],
    ['gzip;q=x', 'identity'],
    ['zstd', 'identity'],
  ])('for the Accept-Encoding %p is %s', (header, encoding) => {
    expect(chooseEncoding(header)).toBe(encoding);
  });
});
