import { expect, test } from '@jest/globals';
import { createCredential, credentialKind, hashCredential } from '@runhook/database';

test('an API key and a service token have different prefixes and a checksum', () => {
  for (const [kind, prefix] of [
    ['user', 'rhu_'],
    ['service_token', 'rhs_'],
  ] as const) {
    const credential = createCredential(kind);
    expect(credential).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{49}$`));
    expect(credentialKind(credential)).toBe(kind);
    expect(createCredential(kind)).not.toBe(credential);
  }
});

test('a mistyped credential is recognized without a query', () => {
  const credential = createCredential('user');
  const middle = credential.charAt(20) === 'a' ? 'b' : 'a';
  expect(credentialKind(credential.slice(0, 20) + middle + credential.slice(21))).toBeNull();
  expect(credentialKind(credential.slice(0, -1))).toBeNull();
  expect(credentialKind(`${credential} `)).toBeNull();
  expect(credentialKind('')).toBeNull();
});

test('the hash of a credential is its SHA-256', () => {
  expect(Buffer.from(hashCredential('abc')).toString('hex')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  );
});
