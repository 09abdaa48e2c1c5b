import { expect, test } from '@jest/globals';
import { CALLBACK_PATH } from '../../src/oidc/provider.ts';
import { type OidcRouteDependencies, oidcEndpoints } from '../../src/oidc/routes.ts';

const SESSION_ID = 'x'.repeat(43);
const FLOW = { state: 's', nonce: 'n', verifier: 'v', next: '/' };

/** Returns the cookies of a sign-in without an identity provider. */
async function cookiesOf(publicUrl: string, secure: boolean): Promise<unknown> {
  const deps = {
    settings: { publicUrl },
    provider: { exchange: async () => ({ kind: 'confirmed', user: {} }) },
    cookie: { read: () => FLOW, remove: () => 'removed' },
    signIn: async () => ({ kind: 'signed_in', sessionId: SESSION_ID }),
    slots: { count: async () => true, refund: async () => undefined, acquire: () => () => undefined },
  } as unknown as OidcRouteDependencies;
  const endpoint = oidcEndpoints(deps, { password: false, oidc: true }).find(
    ({ path }) => path === CALLBACK_PATH,
  );
  const request = { query: { state: FLOW.state }, header: () => undefined, secure };
  const response = await endpoint?.handle(request as never);
  return response?.headers?.['set-cookie'];
}

test('with an https PUBLIC_URL the session of a sign-in at the provider is bound to the host', async () => {
  for (const secure of [true, false])
    expect(await cookiesOf('https://runhook.example.com', secure)).toEqual([
      `__Host-runhook_session=${SESSION_ID}; Path=/; HttpOnly; SameSite=Strict; Secure`,
      'runhook_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure',
      'removed',
    ]);
});

test('with an http PUBLIC_URL the session of a sign-in at the provider is Secure over https only', async () => {
  const attributes = 'Path=/; HttpOnly; SameSite=Strict';
  expect(await cookiesOf('http://127.0.0.1:3000', false)).toEqual([
    `runhook_session=${SESSION_ID}; ${attributes}`,
    'removed',
  ]);
  expect(await cookiesOf('http://127.0.0.1:3000', true)).toEqual([
    `runhook_session=${SESSION_ID}; ${attributes}; Secure`,
    'removed',
  ]);
});
