import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, startHarness } from '../harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness({ securityContact: ['mailto:security@example.com'] });
});

afterAll(() => harness.close());

const read = async (path: string) => {
  const response = await fetch(harness.origin + path, { redirect: 'error' });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** Resolves the links of a page as a browser below `base` would. */
function linksOf(html: string, base: string): string[] {
  return [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link = '']) => new URL(link, base).pathname);
}

test('the page /docs and its assets are served without authentication, with and without a trailing slash', async () => {
  for (const path of ['/docs', '/docs/']) {
    const { status, headers, text } = await read(path);
    expect({ path, status }).toEqual({ path, status: 200 });
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    const links = linksOf(text, harness.origin + path);
    expect(links).toHaveLength(5);
    const types = [];
    for (const link of links) {
      const asset = await read(link);
      expect({ link, status: asset.status }).toEqual({ link, status: 200 });
      types.push(asset.headers.get('content-type')?.split(';')[0]);
    }
    expect(types).toEqual(['text/css', 'text/css', 'image/png', 'text/javascript', 'text/javascript']);
  }
});

test('the links of the page /docs are relative, so that it works below a sub-path', async () => {
  for (const path of ['/docs', '/docs/']) {
    const links = linksOf((await read(path)).text, `https://example.com/runhook${path}`);
    for (const link of links) expect(link).toMatch(/^\/runhook\/docs\/[\w.-]+$/);
  }
  const { text } = await read('/docs/initializer.js');
  const [, document = ''] = /new URL\('([^']+)', document\.currentScript\.src\)/.exec(text) ?? [];
  const resolvedUrl = new URL(document, 'https://example.com/runhook/docs/initializer.js');
  expect(resolvedUrl.pathname).toBe('/runhook/openapi.json');
});

test('the page /docs loads nothing from other hosts, and its content security policy would block it', async () => {
  for (const path of [
    '/docs',
    '/docs/',
    '/docs/initializer.js',
    '/docs/accessibility.css',
    '/docs/swagger-ui.css',
  ]) {
    const { headers, text } = await read(path);
    // Names of XML namespaces in inlined images are not loaded.
    const addresses = text
      .replaceAll('http://www.w3.org/2000/svg', '')
      .match(/(?:https?:)?\/\/[a-z0-9-]+\.[a-z]/gi);
    expect({ path, addresses }).toEqual({ path, addresses: null });
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none';script-src 'self';/);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/);
  }
  // By default, Swagger UI loads the badge of an online validator from another host.
  expect((await read('/docs/initializer.js')).text).toContain('validatorUrl: null');
});

test('the page /docs has its own content security policy, which /openapi.json and unknown paths have not', async () => {
  const policyOf = async (path: string) => (await read(path)).headers.get('content-security-policy');
  const defaultPolicy = await policyOf('/nothing');
  expect(defaultPolicy).toContain("default-src 'self'");
  expect(await policyOf('/openapi.json')).toBe(defaultPolicy);
  expect(await policyOf('/docs')).not.toBe(defaultPolicy);
});

test('no page may be framed', async () => {
  for (const path of ['/docs', '/docs/', '/openapi.json', '/nothing']) {
    const { headers } = await read(path);
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
  }
});

test('/.well-known/security.txt has the configured contacts and expires within a year', async () => {
  const { status, headers, text } = await read('/.well-known/security.txt');
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
  const [, contact, expires = ''] = /^Contact: (.+)\nExpires: (.+)\n$/.exec(text) ?? [];
  expect(contact).toBe('mailto:security@example.com');
  expect((Date.parse(expires) - Date.now()) / 86_400_000).toBeLessThan(365);
});

test('files of Swagger UI that the page /docs does not use are a 404, and a POST of the page is a 405', async () => {
  const assetPaths = [
    'index.html',
    'swagger-initializer.js',
    'package.json',
    'swagger-ui-bundle.js.map',
    '..%2fpackage.json',
  ];
  for (const name of assetPaths) expect((await read(`/docs/${name}`)).status).toBe(404);
  const response = await harness.call('POST', '/docs');
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe('GET, HEAD');
});
