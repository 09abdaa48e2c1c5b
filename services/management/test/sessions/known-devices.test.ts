import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createKnownDevices } from '../../src/sessions/known-devices.ts';

const ADA = 'ada@example.com';
const [OLD, NEW] = ['old', 'new'].map((name) => ({ name, key: randomBytes(32) }));
if (!OLD || !NEW) throw new Error('two keys');

/** Returns the `Cookie` header that the browser sends back. */
const cookieHeader = (setCookie: string) => `runhook_session=x; ${setCookie.split(';')[0]}`;

test('a browser is recognized for the users who signed in there and keeps its id', () => {
  const devices = createKnownDevices([OLD]);
  expect(devices.find(undefined, ADA)).toBeNull();
  const firstCookie = cookieHeader(devices.remember(undefined, ADA, false));
  const device = devices.find(firstCookie, ADA);
  expect(device?.id).toMatch(/^[\w-]{22}$/);
  expect(devices.find(firstCookie, 'bob@example.com')).toBeNull();
  const bothCookie = cookieHeader(devices.remember(firstCookie, 'bob@example.com', false));
  expect(devices.find(bothCookie, ADA)).toEqual(device);
  expect(devices.find(bothCookie, 'bob@example.com')).not.toEqual(device);
  expect(devices.find(cookieHeader(devices.remember(bothCookie, ADA, false)), ADA)).toEqual(device);
});

test('a browser is recognized while its key is in ENCRYPTION_KEYS, and a sign-in renews the cookie with the newest key', () => {
  const oldDevices = createKnownDevices([OLD]);
  const rotatingDevices = createKnownDevices([NEW, OLD]);
  const newDevices = createKnownDevices([NEW]);
  const cookie = cookieHeader(oldDevices.remember(undefined, ADA, false));
  expect(rotatingDevices.find(cookie, ADA)).toEqual(oldDevices.find(cookie, ADA));
  expect(newDevices.find(cookie, ADA)).toBeNull();
  const renewed = cookieHeader(rotatingDevices.remember(cookie, ADA, false));
  expect(newDevices.find(renewed, ADA)).toEqual(oldDevices.find(cookie, ADA));
});

test('a browser is forgotten after half a year, and with the fifth user', () => {
  let nowMs = Date.now();
  const devices = createKnownDevices([OLD], () => nowMs);
  let cookie = cookieHeader(devices.remember(undefined, ADA, false));
  nowMs += 179 * 86_400_000;
  expect(devices.find(cookie, ADA)).not.toBeNull();
  for (const name of ['b', 'c', 'd'])
    cookie = cookieHeader(devices.remember(cookie, `${name}@example.com`, false));
  expect(devices.find(cookie, ADA)).not.toBeNull();
  const fullCookie = cookieHeader(devices.remember(cookie, 'e@example.com', false));
  expect(devices.find(fullCookie, ADA)).toBeNull();
  nowMs += 2 * 86_400_000;
  expect(devices.find(cookie, ADA)).toBeNull();
  expect(devices.find(cookie, 'd@example.com')).not.toBeNull();
});

test.each([
  ['another id', (token: string) => token.replace(/\.[\w-]{22}\./, `.${'A'.repeat(22)}.`)],
  ['a later end', (token: string) => token.replace(/\.\d+\./, '.99999999999.')],
  ['another MAC', (token: string) => token.replace(/[\w-]{43}$/, 'A'.repeat(43))],
  ['no MAC', (token: string) => token.replace(/\.[\w-]{43}$/, '')],
  ['a key that is not there', (token: string) => token.replace(/=old\./, '=older.')],
  ['other text', () => 'runhook_device=~~~'],
])('a cookie with %s is not recognized', (_, change) => {
  const devices = createKnownDevices([OLD]);
  const token = devices.remember(undefined, ADA, false).split(';')[0] ?? '';
  expect(devices.find(change(token), ADA)).toBeNull();
});
