import { expect, test } from '@jest/globals';
import { safeRedirectPath } from '../src/paths.ts';

test.each([
  '/profile/api-access',
  '/accounts/7/settings/webhooks?search=a%20b&page=2',
  '/accounts/7/settings/webhooks/wsu_1/edit',
])('the sign-in returns to %s', (path) => {
  expect(safeRedirectPath(path)).toBe(path);
});

test.each([
  null,
  '',
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example/',
  '/\t/evil.example/',
  '\t//evil.example/',
  '/\n/evil.example',
  '/..//evil.example/',
  '/a/../..//evil.example/',
  'javascript:alert(1)',
  'evil',
  '/sign-in?next=/sign-in',
  '/sign-out',
])('the sign-in ignores %j and opens the start page', (path) => {
  expect(safeRedirectPath(path)).toBe('/');
});
