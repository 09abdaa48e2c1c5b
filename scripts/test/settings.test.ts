import { expect, test } from '@jest/globals';
import { resolveHome } from '../src/home.ts';
import { readSettings } from '../src/settings.ts';

test('npm start makes retries fast and permits loopback unless the environment sets other values', () => {
  expect(readSettings({}).defaults).toEqual({
    RETRY_BASE_DELAY_MS: '1000',
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
  });
  const environment = { RETRY_BASE_DELAY_MS: '50', EGRESS_ALLOW_CIDRS: '10.0.0.0/8' };
  expect(readSettings(environment).defaults).toEqual(environment);
});

test('npm start treats an empty variable as unset', () => {
  const settings = readSettings({ DATABASE_URL: '', QUEUE_URL: '', ENCRYPTION_KEYS: '', PORT: '' });
  expect(settings).toMatchObject({ databaseUrl: null, queueUrl: null, encryptionKeys: null, port: 3000 });
});

test('npm start reports all invalid variables together, without their values', () => {
  const environment = {
    DATABASE_URL: 'mysql://secret',
    QUEUE_URL: 'amqp://secret',
    ENCRYPTION_KEYS: 'secret',
    PORT: 'x',
  };
  const read = () => readSettings(environment);
  for (const name of Object.keys(environment)) expect(read).toThrow(name);
  expect(read).not.toThrow(/secret/);
});

test('RUNHOOK_HOME replaces the folder .runhook, and an empty value counts as unset', () => {
  expect(resolveHome('/checkout', '/elsewhere/with a space').devJson).toBe(
    '/elsewhere/with a space/dev.json',
  );
  expect(resolveHome('/checkout', '').folder).toBe('/checkout/.runhook');
});
