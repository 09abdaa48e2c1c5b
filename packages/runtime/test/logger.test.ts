import { expect, test } from '@jest/globals';
import { addLogFields, createLogger } from '../src/index.ts';

function capture(level = 'info') {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'dispatcher',
    level,
    destination: { write: (line) => void lines.push(line) },
  });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? 'null') };
}

test('a line is JSON with an ISO time, the level as a word and the service', () => {
  const { logger, last } = capture();
  logger.info({ deliveryId: 7 }, 'delivered');
  expect(last()).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    service: 'dispatcher',
    deliveryId: 7,
    msg: 'delivered',
  });
});

test('fields for all lines are evaluated when a line is written, and fields of the line override them', () => {
  const { logger, last } = capture();
  let trace: object = {};
  const child = logger.child({ part: 'relay' });
  addLogFields(logger, () => trace);
  logger.info('before');
  expect(last()).not.toHaveProperty('trace_id');
  trace = { trace_id: 'a', token: 'secret' };
  for (const one of [logger, child]) {
    one.info({ attempt: 1 }, 'within');
    expect(last()).toMatchObject({ attempt: 1, trace_id: 'a', token: '[redacted]' });
  }
  logger.info({ trace_id: 'b' }, 'request');
  expect(last()).toMatchObject({ trace_id: 'b' });
});

test('lines below the level are not written', () => {
  const { logger, lines } = capture('warn');
  logger.info('quiet');
  expect(lines).toEqual([]);
});

test.each([
  'authorization',
  'Authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'apiKey',
  'api_key',
  'x-api-key',
  'newApiKey',
  'hmac_secret',
  'hmacSecret',
  'secret',
  'password',
  'newPassword',
  'token',
  'webhook-signature',
  'ENCRYPTION_KEYS',
])('the field %s is masked at every depth', (name) => {
  const { logger, lines } = capture();
  const secret = { [name]: 'hush-hush' };
  logger.info({
    ...secret,
    a: { ...secret, b: { ...secret, c: { ...secret, d: { ...secret, list: [secret] } } } },
  });
  logger.child(secret).info({ request: { headers: secret } });
  logger.child({ deep: secret }).info('x');
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    expect(line).not.toContain('hush');
    expect(line).toContain('[redacted]');
  }
});

test.each(['secret_count', 'cookieless', 'tokenize', 'author', 'keys', 'passwordConfigured'])(
  'the field %s is not masked',
  (name) => {
    const { logger, last } = capture();
    logger.info({ [name]: 'shown' });
    expect(last()[name]).toBe('shown');
  },
);

test('an error is logged with its stack and without the secrets in its fields, at any depth', () => {
  const { logger, lines, last } = capture();
  const error = Object.assign(new Error('it broke'), {
    code: 'E1',
    options: { headers: { authorization: 'hush-hush' } },
  });
  logger.error(error);
  logger.error({ err: error });
  expect(last().err).toMatchObject({
    type: 'Error',
    message: 'it broke',
    code: 'E1',
    stack: expect.any(String),
  });
  logger.error({ step: { reason: error } });
  expect(last().step.reason).toMatchObject({ message: 'it broke' });
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).not.toContain('hush');
});

test('logged values are not modified, and an object that contains itself is handled', () => {
  const { logger, lines } = capture();
  const circular: Record<string, unknown> = {
    password: 'hush-hush',
    when: new Date(0),
    url: new URL('http://a/'),
  };
  circular.self = circular;
  circular.list = [circular, circular];
  logger.info({ circular });
  expect(circular.password).toBe('hush-hush');
  expect(lines[0]).not.toContain('hush');
  expect(lines[0]).toContain('1970-01-01T00:00:00.000Z');
});
