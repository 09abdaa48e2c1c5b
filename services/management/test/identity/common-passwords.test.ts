import { expect, test } from '@jest/globals';
import { isCommonPassword } from '../../src/identity/common-passwords.ts';

test.each(['password', 'PassWord1', '12345678', 'iloveyou', 'Runhook2026!', 'webhooks#1', 'Administrator1'])(
  '%s is a common password',
  (password) => {
    expect(isCommonPassword(password)).toBe(true);
  },
);

test.each([
  'correct horse battery staple',
  'ein längeres Kennwort ',
  'my runhook wears a green hat',
  '82945617',
])('%s is not a common password', (password) => {
  expect(isCommonPassword(password)).toBe(false);
});
