import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import {
  EVENT_TYPES,
  type EventType,
  type JobRunEvent,
  renderPayload,
  sign,
  verify,
} from '@runhook/contract';
import { EVENTS, HMAC_SECRET, SUBSCRIPTION } from './fixtures.ts';

/**
 * The golden file holds the exact bytes of one delivery per event type, and signatures that `openssl` computed:
 *
 *   jq -j '."job.run.started".body' payloads.golden.json | openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex
 */
type Golden = Record<string, { body: string; signature: string }>;
const golden = JSON.parse(
  await readFile(new URL('./payloads.golden.json', import.meta.url), 'utf8'),
) as Golden;

describe.each(EVENT_TYPES)('%s', (eventType) => {
  const { body, signature } = golden[eventType] as Golden[string];

  test('renders the golden bytes, keys in the order of the contract', () => {
    expect(renderPayload(EVENTS[eventType], SUBSCRIPTION)).toBe(body);
  });

  test('has the signature that openssl computed, of a string and of its bytes', () => {
    expect(sign(body, HMAC_SECRET)).toBe(signature);
    expect(sign(Buffer.from(body), HMAC_SECRET)).toBe(signature);
    expect(verify(body, HMAC_SECRET, signature)).toBe(true);
    expect(verify(Buffer.from(body), HMAC_SECRET, signature)).toBe(true);
  });
});

test('the contract orders the keys: identity first, then data', () => {
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

test('runFinishedAt is only on completed, runErroredAt only on errored, whatever the event carries besides', () => {
  const stray = { runFinishedAt: '2026-01-31T19:31:20Z', runErroredAt: '2026-01-31T19:31:20Z', other: 1 };
  const dataOf = (eventType: EventType) => {
    const event = { ...EVENTS[eventType], data: { ...stray, ...EVENTS[eventType].data } } as JobRunEvent;
    return Object.keys(JSON.parse(renderPayload(event, SUBSCRIPTION)).data).slice(13);
  };
  expect(dataOf('job.run.started')).toEqual([]);
  expect(dataOf('job.run.completed')).toEqual(['runFinishedAt']);
  expect(dataOf('job.run.errored')).toEqual(['runErroredAt']);
});

describe('verify refuses', () => {
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
  ])('%s', (_case, candidate, secret, authorization) => {
    expect(verify(candidate, secret, authorization)).toBe(false);
  });
});
