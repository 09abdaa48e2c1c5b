import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createKnownDevices } from '../../src/sessions/known-devices.ts';

const ADA = 'ada@example.com';
const [OLD, NEW] = ['old', 'new'].map((name) => ({ name, key: randomBytes(32) }));
if (!OLD || !NEW) throw new Error('two keys');

/** Returns the `Cookie` header that the browser sends back. */
const sent = (setCookie: string) => `runhook_session=x; ${setCookie.split(';')[0]}`;

test('a browser is recognized for the users who signed in there and keeps its id', () => {
  const devices = createKnownDevices([OLD]);
  expect(devices.find(undefined, ADA)).toBeNull();
  const first = sent(devices.remember(undefined, ADA, false));
  const device = devices.find(first, ADA);
  expect(device?.id).toMatch(/^[\w-]{22}$/);
  expect(devices.find(first, 'bob@example.com')).toBeNull();
  const both = sent(devices.remember(first, 'bob@example.com', false));
  expect(devices.find(both, ADA)).toEqual(device);
  expect(devices.find(both, 'bob@example.com')).not.toEqual(device);
  expect(devices.find(sent(devices.remember(both, ADA, false)), ADA)).toEqual(device);
});

test('a browser is recognized while its key is in ENCRYPTION_KEYS, and a sign-in renews the cookie with the newest key', () => {
  const before = createKnownDevices([OLD]);
  const during = createKnownDevices([NEW, OLD]);
  const after = createKnownDevices([NEW]);
  const cookie = sent(before.remember(undefined, ADA, false));
  expect(during.find(cookie, ADA)).toEqual(before.find(cookie, ADA));
  expect(after.find(cookie, ADA)).toBeNull();
  const renewed = sent(during.remember(cookie, ADA, false));
  expect(after.find(renewed, ADA)).toEqual(before.find(cookie, ADA));
});

test('a browser is forgotten after half a year, and with the fifth user', () => {
  let nowMs = Date.now();
  const devices = createKnownDevices([OLD], () => nowMs);
  let cookie = sent(devices.remember(undefined, ADA, false));
  nowMs += 179 * 86_400_000;
  expect(devices.find(cookie, ADA)).not.toBeNull();
  for (const name of ['b', 'c', 'd']) cookie = sent(devices.remember(cookie, `${name}@example.com`, false));
  expect(devices.find(cookie, ADA)).not.toBeNull();
  const crowded = sent(devices.remember(cookie, 'e@example.com', false));
  expect(devices.find(crowded, ADA)).toBeNull();
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
