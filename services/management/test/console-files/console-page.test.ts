import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { relativeRoot } from '../../src/console-files/files.ts';
import { failure, type Harness, startHarness } from '../harness.ts';
import {
  BROWSER,
  type BuiltConsole,
  createBuiltConsole,
  type Raw,
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

const openPage = (path: string, headers: Record<string, string> = BROWSER, method = 'GET') =>
  rawRequest(harness.origin, path, { headers, method });

const baseOf = ({ text }: Raw) => /<base href="([^"]*)">/.exec(text)?.[1] ?? '';

test('an address that is not reserved returns the page of the console to browsers, which revalidate it', async () => {
  for (const path of ['/', '/accounts/1/webhooks', '/accounts/1/webhooks/wsu_x?tab=log', '/nothing%2Fhere']) {
    const { status, headers, text } = await openPage(path);
    expect([path, status, headers['cache-control']]).toEqual([path, 200, 'no-cache']);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers.vary).toMatch(/Accept/);
    expect(text).toContain('<title>Runhook costs $& nothing $1</title>');
  }
  const head = await openPage('/accounts/1', BROWSER, 'HEAD');
  expect([head.status, head.body.length, head.headers['cache-control']]).toEqual([200, 0, 'no-cache']);
});

test('the root returns the page of the console to clients that accept any type, other paths only to browsers', async () => {
  for (const headers of [{}, { accept: '*/*' }] as Record<string, string>[]) {
    expect((await openPage('/', headers)).text).toContain('<base');
    const { status, text } = await openPage('/nothing', headers);
    expect([status, JSON.parse(text)]).toEqual([404, failure(404, 'Not found.')]);
  }
  expect((await openPage('/', { accept: 'application/json' })).status).toBe(404);
  expect((await openPage('/accounts/1', BROWSER, 'POST')).status).toBe(404);
});

test('paths of the API and other reserved paths never return the page of the console', async () => {
  const paths = [
    '/api',
    '/api/v9/nothing',
    '//api/v9/nothing',
    '/API/v9',
    '/docs/nothing',
    '/metrics/x',
    '/healthz/x',
    '/assets/x',
    '/.well-known/security.txt',
  ];
  for (const path of paths) {
    const { status, headers } = await openPage(path);
    expect([path, status, headers['content-type']]).toEqual([path, 404, 'application/json; charset=utf-8']);
  }
  expect((await openPage('/docs')).text).toContain('swagger-ui');
  expect(JSON.parse((await openPage('/openapi.json')).text).openapi).toBe('3.1.0');
  expect((await openPage('/readyz')).headers['content-type']).toMatch(/^application\/json/);
});

test('the base element of the page of the console leads to the root from any depth of path', async () => {
  const paths = ['/', '/a', '/a/', '/a/b', '/a/b/', '/a//b', '//a', '/a%2Fb/c', '/a/b?next=/x/y', '/x%2e/a'];
  for (const prefix of ['', '/tools/runhook']) {
    for (const path of paths) {
      const base = new URL(baseOf(await openPage(path)), `https://example.com${prefix}${path}`);
      expect([prefix + path, base.href]).toEqual([prefix + path, `https://example.com${prefix}/`]);
    }
  }
  expect(relativeRoot('')).toBe('./');
});

test('console and API work behind a proxy that strips a prefix, without configuration', async () => {
  const proxy = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith('/tools/runhook/')) return outgoing.writeHead(404).end();
    const { hostname, port } = new URL(harness.origin);
    const { method, headers } = incoming;
    const path = incoming.url.slice('/tools/runhook'.length);
    incoming.pipe(
      httpRequest({ hostname, port, path, method, headers }, (upstreamResponse) => {
        outgoing.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
        upstreamResponse.pipe(outgoing);
      }),
    );
  }).listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => proxy.once('listening', resolve));
    const outside = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const address = `${outside}/tools/runhook/accounts/1/webhooks/new`;
    const page = await (await fetch(address, { headers: BROWSER })).text();
    const base = new URL(/<base href="([^"]*)">/.exec(page)?.[1] ?? '', address);
    expect(base.href).toBe(`${outside}/tools/runhook/`);
    const script = /<script [^>]*src="([^"]*)"/.exec(page)?.[1] ?? '';
    expect(await (await fetch(new URL(script, base))).text()).toBe(SCRIPT);
    expect((await fetch(new URL('api/v3/session', base))).status).toBe(401);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test('the content security policy permits no other hosts, no inline scripts, and inline styles only by a nonce', async () => {
  const [firstPage, secondPage] = await Promise.all([openPage('/'), openPage('/')]);
  const nonceOf = ({ text }: Raw) => /<meta name="csp-nonce" content="([\w-]{22})">/.exec(text)?.[1];
  expect(nonceOf(firstPage)).toBeDefined();
  expect(nonceOf(firstPage)).not.toBe(nonceOf(secondPage));
  const policy = String(firstPage.headers['content-security-policy']);
  expect(policy).toContain(`style-src 'self' 'nonce-${nonceOf(firstPage)}'`);
  expect(policy).toMatch(/^default-src 'none';script-src 'self';/);
  expect(policy).not.toMatch(/https?:|\*|unsafe-eval|(?:script|style)-src [^;]*unsafe-inline/);
  for (const directive of ["base-uri 'self'", "form-action 'self'", "frame-ancestors 'none'"])
    expect(policy).toContain(directive);
  const head = firstPage.text.slice(firstPage.text.indexOf('<head'), firstPage.text.indexOf('<title'));
  expect(head).toMatch(/^<head data-of="the build">\n<base /);
});

test('without a build of the console a page explains how to build it, and a later build needs no restart', async () => {
  const unbuilt = await createBuiltConsole(false);
  const bare = await startHarness({}, { consoleFolder: unbuilt.folder });
  try {
    const page = await rawRequest(bare.origin, '/', { headers: BROWSER });
    expect(page.status).toBe(404);
    expect(page.text).toContain('npm run build');
    expect(String(page.headers['content-security-policy'])).toContain("script-src 'self'");
    const account = await bare.newAccount();
    const list = await bare.call('GET', account.path('/subscriptions'), { token: account.token });
    expect(list.status).toBe(200);
    await unbuilt.write('index.html', `<html><head><script src=".${SCRIPT_PATH}"></script></head></html>`);
    const partialBuild = await rawRequest(bare.origin, '/', { headers: BROWSER });
    expect([partialBuild.status, partialBuild.text]).toEqual([404, page.text]);
    await unbuilt.write(SCRIPT_PATH, SCRIPT);
    expect((await rawRequest(bare.origin, '/', { headers: BROWSER })).text).toContain('<base href="./">');
    expect((await rawRequest(bare.origin, SCRIPT_PATH)).text).toBe(SCRIPT);
  } finally {
    await bare.close();
    await unbuilt.remove();
  }
});
