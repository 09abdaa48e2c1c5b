import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createDeviceCookies } from '../../src/sessions/device-cookies.ts';

const ADA = 'ada@example.com';
const PLAIN = { prefix: '', isSecure: false } as const;
const [OLD, NEW] = ['old', 'new'].map((name) => ({ name, key: randomBytes(32) }));
if (!OLD || !NEW) throw new Error('two keys');

/** Returns the `Cookie` header that the browser sends back. */
const cookieHeader = (setCookie: string) => `runhook_session=x; ${setCookie.split(';')[0]}`;

test('a browser is recognized for the users who signed in there and keeps its id', () => {
  const deviceCookies = createDeviceCookies([OLD]);
  expect(deviceCookies.find(undefined, ADA)).toBeNull();
  const firstCookie = cookieHeader(deviceCookies.issue(undefined, ADA, PLAIN));
  const device = deviceCookies.find(firstCookie, ADA);
  expect(device?.id).toMatch(/^[\w-]{22}$/);
  expect(deviceCookies.find(firstCookie, 'bob@example.com')).toBeNull();
  const bothCookie = cookieHeader(deviceCookies.issue(firstCookie, 'bob@example.com', PLAIN));
  expect(deviceCookies.find(bothCookie, ADA)).toEqual(device);
  expect(deviceCookies.find(bothCookie, 'bob@example.com')).not.toEqual(device);
  expect(deviceCookies.find(cookieHeader(deviceCookies.issue(bothCookie, ADA, PLAIN)), ADA)).toEqual(device);
});

test('a browser is recognized while its cookie’s key is in ENCRYPTION_KEYS; a sign-in uses the newest key', () => {
  const oldDevices = createDeviceCookies([OLD]);
  const rotatingDevices = createDeviceCookies([NEW, OLD]);
  const newDevices = createDeviceCookies([NEW]);
  const cookie = cookieHeader(oldDevices.issue(undefined, ADA, PLAIN));
  expect(rotatingDevices.find(cookie, ADA)).toEqual(oldDevices.find(cookie, ADA));
  expect(newDevices.find(cookie, ADA)).toBeNull();
  const renewed = cookieHeader(rotatingDevices.issue(cookie, ADA, PLAIN));
  expect(newDevices.find(renewed, ADA)).toEqual(oldDevices.find(cookie, ADA));
});

test('a user’s browser is recognized for half a year, and until four other users have signed in there', () => {
  let nowMs = Date.now();
  const deviceCookies = createDeviceCookies([OLD], () => nowMs);
  let cookie = cookieHeader(deviceCookies.issue(undefined, ADA, PLAIN));
  nowMs += 179 * 86_400_000;
  expect(deviceCookies.find(cookie, ADA)).not.toBeNull();
  for (const name of ['b', 'c', 'd'])
    cookie = cookieHeader(deviceCookies.issue(cookie, `${name}@example.com`, PLAIN));
  expect(deviceCookies.find(cookie, ADA)).not.toBeNull();
  const fullCookie = cookieHeader(deviceCookies.issue(cookie, 'e@example.com', PLAIN));
  expect(deviceCookies.find(fullCookie, ADA)).toBeNull();
  nowMs += 2 * 86_400_000;
  expect(deviceCookies.find(cookie, ADA)).toBeNull();
  expect(deviceCookies.find(cookie, 'd@example.com')).not.toBeNull();
});

test('a browser that was recognized before PUBLIC_URL was https remains recognized, with a cookie of this host', () => {
  const deviceCookies = createDeviceCookies([OLD]);
  const before = cookieHeader(deviceCookies.issue(undefined, ADA, PLAIN));
  const setCookie = deviceCookies.issue(before, ADA, { prefix: '__Host-', isSecure: true });
  expect(setCookie).toMatch(/^__Host-runhook_device=.*; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
  const after = cookieHeader(setCookie);
  expect(deviceCookies.find(after, ADA)).toEqual(deviceCookies.find(before, ADA));
  // Another host of the domain can set only the cookie without the prefix.
  expect(deviceCookies.find(`runhook_device=other; ${after}`, ADA)).toEqual(deviceCookies.find(before, ADA));
});

test.each([
  ['another id', (token: string) => token.replace(/\.[\w-]{22}\./, `.${'A'.repeat(22)}.`)],
  ['a later end', (token: string) => token.replace(/\.\d+\./, '.99999999999.')],
  ['another MAC', (token: string) => token.replace(/[\w-]{43}$/, 'A'.repeat(43))],
  ['no MAC', (token: string) => token.replace(/\.[\w-]{43}$/, '')],
  ['a key that is not there', (token: string) => token.replace(/=old\./, '=older.')],
  ['other text', () => 'runhook_device=~~~'],
])('a device cookie with %s is not recognized', (_, change) => {
  const deviceCookies = createDeviceCookies([OLD]);
  const token = deviceCookies.issue(undefined, ADA, PLAIN).split(';')[0] ?? '';
  expect(deviceCookies.find(change(token), ADA)).toBeNull();
});
