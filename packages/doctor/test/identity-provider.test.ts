import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { examineIdentityProvider } from '../src/identity-provider.ts';

const TIMEOUT_MS = 60_000;
let document: object | null = null;
let issuer: string;

const server = createServer((request, response) => {
  const isDiscovery = request.url === '/realms/x/.well-known/openid-configuration' && document !== null;
  response.writeHead(isDiscovery ? 200 : 404).end(JSON.stringify(document ?? {}));
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realms/x`;
});

afterAll(() => void server.close());

const complete = () => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
  scopes_supported: ['openid', 'offline_access'],
  backchannel_logout_supported: true,
});

async function examine(provided: object | null) {
  document = provided;
  const { status, message } = await examineIdentityProvider(issuer, TIMEOUT_MS);
  return `${status}: ${message}`;
}

test('the identity provider is examined by its discovery document', async () => {
  expect(await examine(complete())).toBe('ok: can be read: offline_access, back-channel logout');
  const neither = { ...complete(), scopes_supported: ['openid'], backchannel_logout_supported: undefined };
  expect(await examine(neither)).toBe('warning: can be read: no offline_access, no back-channel logout');
  expect(await examine({ ...complete(), issuer: 'https://other' })).toBe(
    'failed: names another issuer: https://other',
  );
  expect(await examine({ ...complete(), jwks_uri: undefined })).toBe('failed: has no jwks_uri');
  expect(await examine(null)).toMatch(/^failed: .* is no discovery document \(404\)$/);
});

test('an identity provider that cannot be reached is a failure', async () => {
  const { status, message } = await examineIdentityProvider('http://127.0.0.1:9', TIMEOUT_MS);
  expect(status).toBe('failed');
  expect(message).toMatch(/cannot be read/);
});
