import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createSecretBox, parseEncryptionKeys, SecretBoxError } from '@runhook/database';

const newKey = (name: string) => `${name}:${randomBytes(32).toString('base64')}`;
const boxOf = (text: string) => createSecretBox(parseEncryptionKeys(text));

test('a ciphertext decrypts to the secret, does not contain it, and differs each time', () => {
  const box = boxOf(newKey('a'));
  const ciphertext = box.encrypt('whsec_ünï');
  expect(box.decrypt(ciphertext)).toBe('whsec_ünï');
  expect(ciphertext).toMatch(/^a\.[\w-]+$/);
  expect(box.encrypt('whsec_ünï')).not.toBe(ciphertext);
});

test('the newest key encrypts and every key decrypts', () => {
  const [older, newer] = [newKey('older'), newKey('newer')];
  const before = boxOf(older).encrypt('secret');
  const both = boxOf(`${newer}, ${older}`);
  expect(both.decrypt(before)).toBe('secret');
  expect(both.encrypt('secret')).toMatch(/^newer\./);
});

test('a tampered ciphertext, another key under the same name, and an unknown key are rejected', () => {
  const box = boxOf(newKey('a'));
  const ciphertext = box.encrypt('secret');
  const flipped = ciphertext.slice(0, -2) + (ciphertext.endsWith('AA') ? 'BB' : 'AA');
  expect(() => box.decrypt(flipped)).toThrow(SecretBoxError);
  expect(() => boxOf(newKey('a')).decrypt(ciphertext)).toThrow(SecretBoxError);
  expect(() => boxOf(newKey('b')).decrypt(ciphertext)).toThrow(SecretBoxError);
  expect(() => box.decrypt('nonsense')).toThrow(SecretBoxError);
});

describe('invalid keys are rejected with a message that does not contain them', () => {
  const secret = randomBytes(16).toString('base64');
  test.each([
    ['no name', secret],
    ['16 bytes', `a:${secret}`],
    ['a name twice', `${newKey('a')},${newKey('a')}`],
    ['a bad name', `a b:${secret}`],
    ['nothing', ''],
  ])('when the text has %s', (_case, text) => {
    let message = '';
    try {
      parseEncryptionKeys(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(/key/);
    expect(message).not.toContain(secret);
  });
});
