import { expect, test } from '@jest/globals';
import { createSecretBox } from '@runhook/database';
import { createSignInCookie } from '../../src/oidc/sign-in-cookie.ts';

const secrets = createSecretBox([{ name: 'test', key: Buffer.alloc(32, 3) }]);
const FLOW = { state: 's', nonce: 'n', verifier: 'v', next: '/profile/api-access' };
const MINUTE_MS = 60_000;

test('the cookie of a sign-in is valid for ten minutes, encrypted, and sent with navigations from other sites', () => {
  let nowMs = 1_000_000;
  const cookie = createSignInCookie(secrets, { prefix: '__Host-', isSecure: true }, () => nowMs);
  const issued = cookie.issue(FLOW);
  expect(issued).toMatch(
    /^__Host-runhook_oidc=test\.[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  const header = `other=1; ${issued.split(';')[0]}`;
  nowMs += 10 * MINUTE_MS - 1;
  expect(cookie.read(header)).toEqual(FLOW);
  nowMs += 1;
  expect(cookie.read(header)).toBeNull();
});

test('the cookie of a sign-in is rejected unless this service has made it for a sign-in', () => {
  const cookie = createSignInCookie(secrets, { prefix: '', isSecure: false });
  const [pair = ''] = cookie.issue(FLOW).split(';');
  expect(cookie.read(pair)).toEqual(FLOW);
  const rejected = [
    undefined,
    '',
    pair.slice(0, -8),
    `runhook_oidc=${secrets.encrypt('rhu_key')}`,
    `runhook_oidc=${secrets.encrypt(JSON.stringify({ ...FLOW, expiresAtMs: 9e15 }))}`,
    `runhook_oidc=${Buffer.from(JSON.stringify(FLOW)).toString('base64url')}`,
  ];
  expect(rejected.map((header) => cookie.read(header))).toEqual(rejected.map(() => null));
});
