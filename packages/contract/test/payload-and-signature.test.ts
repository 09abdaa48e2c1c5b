import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import {
  EVENT_TYPES,
  type EventType,
  type JobRunEvent,
  renderPayload,
  sign,
  standardWebhooksHeaders,
  verify,
} from '@runhook/contract';
import { EVENTS, HMAC_SECRET, SUBSCRIPTION } from './fixtures.ts';

/** Format written by scripts/build/golden.mjs. */
interface GoldenDelivery {
  name: string;
  body: string;
  bodyBase64: string;
  headers: Record<string, string>;
  secrets: [string, ...string[]];
  genuine: { authorization: boolean; standardWebhooks: boolean };
}

const GOLDEN = new URL('../golden/deliveries.json', import.meta.url);
const { deliveries } = JSON.parse(await readFile(GOLDEN, 'utf8')) as { deliveries: GoldenDelivery[] };
const golden = Object.fromEntries(
  EVENT_TYPES.map((eventType) => {
    const { body = '', headers } = deliveries.find((one) => one.body.includes(`:"${eventType}"`)) ?? {};
    return [eventType, { body, signature: headers?.authorization ?? '' }];
  }),
);
type Golden = typeof golden;

test('the golden files are identical to the output of npm run build -- golden', () => {
  const script = fileURLToPath(new URL('../../../scripts/build/golden.mjs', import.meta.url));
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('the golden deliveries have the signatures that a dispatcher makes', () => {
  for (const { body, bodyBase64, headers, secrets, genuine } of deliveries) {
    expect(Buffer.from(bodyBase64, 'base64').toString()).toBe(body);
    const isSigned = secrets.some((secret) => verify(body, secret, headers.authorization));
    expect(isSigned).toBe(genuine.authorization);
    if (!genuine.authorization || !genuine.standardWebhooks || secrets.length > 1) continue;
    const id = headers['webhook-id'] ?? '';
    const signed = standardWebhooksHeaders(id, Number(headers['webhook-timestamp']), body, secrets);
    expect(headers['webhook-signature']?.split(' ')).toContain(signed['webhook-signature']);
  }
});

const openssl = spawnSync('openssl', ['version']).status === 0;
if (!openssl) process.stderr.write('openssl does not compute the golden signatures: it is not on the path\n');

(openssl ? test : test.skip)('the golden signatures are identical to those of openssl', () => {
  const hmac = (key: string, of: string | Buffer, ...form: string[]) =>
    spawnSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', key, ...form], { input: of }).stdout;
  for (const { bodyBase64, headers, secrets, genuine } of deliveries) {
    const body = Buffer.from(bodyBase64, 'base64');
    const [secret] = secrets;
    if (genuine.authorization && secrets.length === 1)
      expect(String(hmac(`key:${secret}`, body, '-r'))).toContain(headers.authorization);
    if (!genuine.standardWebhooks || secrets.length > 1) continue;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64').toString('hex');
    const signed = Buffer.concat([
      Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
      body,
    ]);
    const signature = hmac(`hexkey:${key}`, signed, '-binary').toString('base64');
    expect(headers['webhook-signature']?.split(' ')).toContain(`v1,${signature}`);
  }
});

describe.each(EVENT_TYPES)('the event type %s', (eventType) => {
  const { body, signature } = golden[eventType] as Golden[string];

  test('is rendered as the golden bytes, with its keys in the order of the contract', () => {
    expect(renderPayload(EVENTS[eventType], SUBSCRIPTION)).toBe(body);
  });

  test('has the golden signature for a string and for its bytes', () => {
    expect(sign(body, HMAC_SECRET)).toBe(signature);
    expect(sign(Buffer.from(body), HMAC_SECRET)).toBe(signature);
    expect(verify(body, HMAC_SECRET, signature)).toBe(true);
    expect(verify(Buffer.from(body), HMAC_SECRET, signature)).toBe(true);
  });
});

test('the body has the identity of the event first and its data last, in the order of the contract', () => {
  const payload = JSON.parse(golden['job.run.completed']?.body ?? '') as { data: object };
  expect(Object.keys(payload)).toEqual([
    'accountId',
    'webhooksID',
    'eventId',
    'timestamp',
    'eventType',
    'webhookName',
    'data',
  ]);
  expect(Object.keys(payload.data)).toEqual([
    'jobId',
    'jobName',
    'runId',
    'environmentId',
    'environmentName',
    'engineVersion',
    'projectName',
    'projectId',
    'runStatus',
    'runStatusCode',
    'runStatusMessage',
    'runReason',
    'runStartedAt',
    'runFinishedAt',
  ]);
});

test('runFinishedAt is sent only in completed events and runErroredAt only in errored ones, even if the event contains other fields', () => {
  const stray = { runFinishedAt: '2026-01-31T19:31:20Z', runErroredAt: '2026-01-31T19:31:20Z', other: 1 };
  const dataOf = (eventType: EventType) => {
    const event = { ...EVENTS[eventType], data: { ...stray, ...EVENTS[eventType].data } } as JobRunEvent;
    return Object.keys(JSON.parse(renderPayload(event, SUBSCRIPTION)).data).slice(13);
  };
  expect(dataOf('job.run.started')).toEqual([]);
  expect(dataOf('job.run.completed')).toEqual(['runFinishedAt']);
  expect(dataOf('job.run.errored')).toEqual(['runErroredAt']);
});

describe('verify()', () => {
  const { body, signature } = golden['job.run.started'] as Golden[string];
  test.each([
    ['another body', `${body} `, HMAC_SECRET, signature],
    ['another secret', body, `${HMAC_SECRET}x`, signature],
    ['an upper-case signature', body, HMAC_SECRET, signature.toUpperCase()],
    ['a shorter signature', body, HMAC_SECRET, signature.slice(0, 63)],
    ['a longer signature', body, HMAC_SECRET, `${signature}0`],
    ['an empty signature', body, HMAC_SECRET, ''],
    ['no signature', body, HMAC_SECRET, undefined],
    ['characters that are longer in UTF-8', body, HMAC_SECRET, 'é'.repeat(64)],
  ])('rejects %s', (_case, candidate, secret, authorization) => {
    expect(verify(candidate, secret, authorization)).toBe(false);
  });
});
