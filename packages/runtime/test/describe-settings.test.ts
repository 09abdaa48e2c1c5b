import { expect, test } from '@jest/globals';
import { describeSettings } from '../src/index.ts';

test('secrets are shown as configured or not, and other settings with their values', () => {
  const settings = {
    port: 80,
    databaseUrl: 'postgresql://u:p@db/x',
    keys: ['a'],
    token: '',
    cert: undefined,
    names: {},
  };
  expect(describeSettings(settings, ['databaseUrl', 'keys', 'token', 'cert', 'names'])).toEqual({
    port: 80,
    databaseUrlConfigured: true,
    keysConfigured: true,
    tokenConfigured: false,
    certConfigured: false,
    namesConfigured: false,
  });
});

test.each([
  ['redis://user:pa@ss@host:6379/0', 'redis://***@host:6379/0'],
  ['redis://:pass@host', 'redis://***@host'],
  ['redis://host/a@b', 'redis://host/a@b'],
  [
    'redis+sentinel://a:p@h1:1,h2/m?sentinelPassword=x&family=4',
    'redis+sentinel://***@h1:1,h2/m?sentinelPassword=***&family=4',
  ],
  ['plain text', 'plain text'],
])('credentials in the URL %s are masked even if the setting is not listed as a secret', (url, shown) => {
  expect(describeSettings({ url })).toEqual({ url: shown });
});
