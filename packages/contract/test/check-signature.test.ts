import { describe, expect, test } from '@jest/globals';
import { checkSignature, type DeliveryInput } from '../src/check-signature.ts';
import { createHmacSecret, EVENT_TYPES, sign, standardWebhooksHeaders } from '../src/index.ts';
import { renderPayload, sampleEvent } from '../src/samples.ts';
import { formatDifference, formatVerdict } from '../src/signature-wording.ts';

const SECRET = createHmacSecret();
const WEBHOOK = { id: 'wsu_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x', name: 'Zoë’s “pager”' };
const EVENT = sampleEvent('job.run.errored', {
  accountId: 7,
  eventId: 'wev_1',
  now: new Date(1_795_168_800_000),
});
const BODY = renderPayload(EVENT, WEBHOOK);
const HEADER = sign(BODY, SECRET);
const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const sorted = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => a.localeCompare(b))
          .map(([key, inner]) => [key, sorted(inner)]),
      )
    : value;

const check = async (received: Partial<DeliveryInput> = {}) =>
  await checkSignature({
    body: BODY,
    header: HEADER,
    secret: SECRET,
    signatureHeader: 'Authorization',
    ...received,
  });

describe('a correct signature', () => {
  test.each(EVENT_TYPES)('is accepted for a sample of %s', async (eventType) => {
    const event = sampleEvent(eventType, { accountId: 7, eventId: 'wev_1', now: new Date() });
    const body = renderPayload(event, WEBHOOK);
    expect(await check({ body, header: sign(body, SECRET) })).toEqual({ kind: 'genuine' });
  });

  test.each([
    ['as a line', `Authorization: ${HEADER}`],
    ['among other headers', `host: a.example\r\nauthorization: ${HEADER}\r\nwebhook-id: wev_1\r\n`],
    ['with a trailing line break', `${HEADER}\n`],
  ])('is accepted with the header %s', async (_how, header) => {
    expect(await check({ header })).toEqual({ kind: 'genuine' });
  });

  test('is accepted in a custom signature header of the webhook', async () => {
    const header = `authorization: Basic abc\nx-signature: ${HEADER}`;
    expect(await check({ header, signatureHeader: 'X-Signature' })).toEqual({ kind: 'genuine' });
  });

  test('is accepted for a body that is not JSON', async () => {
    expect(await check({ body: 'plain', header: sign('plain', SECRET) })).toEqual({ kind: 'genuine' });
  });

  test('is accepted in webhook-signature if one of its two signatures is by the secret', async () => {
    const headers = standardWebhooksHeaders('wev_1', 1_795_168_800, BODY, [createHmacSecret(), SECRET]);
    const header = Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n');
    expect(await check({ header })).toEqual({ kind: 'genuine' });
    // The body contains the event id, too.
    expect(await check({ header: header.replace(/^webhook-id.*\n/, '') })).toEqual({ kind: 'genuine' });
    expect(await check({ header: headers['webhook-signature'] })).toEqual({
      kind: 'unreadable',
      reason: 'no-timestamp',
    });
    expect(await check({ header: header.replaceAll('v1,', '') })).toMatchObject({
      differences: ['header-v1'],
    });
  });
});

describe('a delivery that was changed in transit', () => {
  const parsed = JSON.parse(BODY);
  const pretty = JSON.stringify(parsed, null, 2);
  const escaped = BODY.replaceAll(
    /[^\0-\x7f]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const lines = 'a\nb';

  test.each<[string, Partial<DeliveryInput>, string[], object | null]>([
    [
      'a byte order mark',
      { body: `\uFEFF${BODY}` },
      ['mark-added'],
      { offset: 0, received: 0xef, signed: 0x7b },
    ],
    ['a trailing newline added', { body: `${BODY}\n` }, ['newline-added'], { received: 10, signed: null }],
    ['a trailing CRLF added', { body: `${BODY}\r\n` }, ['newline-added'], { received: 13, signed: null }],
    [
      'a trailing newline removed',
      { header: sign(`${BODY}\n`, SECRET) },
      ['newline-removed'],
      { received: null, signed: 10 },
    ],
    [
      'CRLF that was LF',
      { body: 'a\r\nb', header: sign(lines, SECRET) },
      ['crlf'],
      { offset: 1, received: 13, signed: 10 },
    ],
    [
      'LF that was CRLF',
      { body: lines, header: sign('a\r\nb', SECRET) },
      ['lf'],
      { offset: 1, received: 10, signed: 13 },
    ],
    [
      'white space of another serializer',
      { body: pretty },
      ['spaces'],
      { offset: 1, received: 10, signed: 34 },
    ],
    [
      'white space and a newline of another serializer',
      { body: `${pretty}\n` },
      ['spaces'],
      { offset: 1, received: 10, signed: 34 },
    ],
    ['escapes of another serializer', { body: escaped }, ['escapes'], { received: 92, signed: 0xc3 }],
    [
      'sorted keys',
      { body: JSON.stringify(sorted(parsed)) },
      ['key-order'],
      { offset: 16, received: 100, signed: 119 },
    ],
    [
      'white space in JSON that is not an event',
      { body: '{ "a": 1 }', header: sign('{"a":1}', SECRET) },
      ['spaces'],
      { offset: 1, received: 32, signed: 34 },
    ],
    ['a secret with blanks', { secret: ` ${SECRET}\n` }, ['secret-blanks'], null],
    ['a secret in quotes', { secret: `"${SECRET}"` }, ['secret-quotes'], null],
    ['a secret without its prefix', { secret: SECRET.slice(6) }, ['secret-prefix'], null],
    ['a signature in base64', { header: base64(HEADER) }, ['header-base64'], null],
    ['a signature in upper case', { header: HEADER.toUpperCase() }, ['header-capitals'], null],
    ['a signature after Bearer', { header: `Bearer ${HEADER}` }, ['header-scheme'], null],
    ['a signature after sha256=', { header: `sha256=${HEADER}` }, ['header-scheme'], null],
    ['a signature with blanks', { header: ` ${HEADER} ` }, ['header-blanks'], null],
    [
      'two changes at once',
      { body: `${BODY}\n`, secret: `${SECRET} ` },
      ['newline-added', 'secret-blanks'],
      { received: 10 },
    ],
  ])(
    'is reported with the change that has to be reversed for its signature to match: %s',
    async (_what, received, differences, byte) => {
      const verdict = await check(received);
      expect(verdict).toMatchObject({ kind: 'nearly', differences });
      if (byte === null) expect(verdict).toMatchObject({ byte: null });
      else expect(verdict).toMatchObject({ byte });
      for (const line of formatVerdict(verdict, WEBHOOK.id).lines) expect(line).toMatch(/^\S.+\.$/);
    },
  );

  test('is reported when it was signed with the key of the other scheme', async () => {
    const decoded = Buffer.from(SECRET.slice(6), 'base64');
    const hmac = await crypto.subtle.importKey('raw', decoded, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'sign',
    ]);
    const signature = Buffer.from(await crypto.subtle.sign('HMAC', hmac, Buffer.from(BODY))).toString('hex');
    expect(await check({ header: signature })).toMatchObject({ differences: ['key-decoded'] });
    const fullSignature = base64(sign(`wev_1.1.${BODY}`, SECRET));
    const header = `webhook-timestamp: 1\nwebhook-signature: v1,${fullSignature}`;
    expect(await check({ header })).toMatchObject({ differences: ['key-whole'] });
  });

  test('is reported with the first differing byte, by its offset in UTF-8', () => {
    const sentence = formatDifference({ offset: 480, received: 10, signed: null });
    expect(sentence).toBe(
      'Byte 480 differs: your body has a line feed (0x0a), the signed body has nothing, because it ends there.',
    );
    expect(formatDifference({ offset: 0, received: 0xc3, signed: 0x7b })).toContain(
      'has 0xc3, the signed body has “{” (0x7b)',
    );
  });
});

describe('a signature that no reversed change explains', () => {
  test('is attributed to the secret if the body has exactly the format that Runhook sends', async () => {
    const verdict = await check({ secret: createHmacSecret() });
    expect(verdict).toEqual({ kind: 'wrong', isCanonical: true, webhookId: WEBHOOK.id });
    expect(formatVerdict(verdict, WEBHOOK.id).lines).toEqual([
      expect.stringContaining('the secret is wrong'),
    ]);
    expect(formatVerdict(verdict, 'wsu_other').lines[0]).toMatch(/^The body is from another webhook/);
  });

  test('is reported as wrong with isCanonical false if the body has another format', async () => {
    const body = JSON.stringify({ ...JSON.parse(BODY), more: 1 }, null, 1);
    expect(await check({ body, secret: createHmacSecret() })).toMatchObject({
      kind: 'wrong',
      isCanonical: false,
    });
    expect(await check({ body: 'no JSON' })).toEqual({ kind: 'wrong', isCanonical: false, webhookId: null });
    expect(await check({ header: HEADER.slice(1) })).toMatchObject({ kind: 'wrong' });
  });

  test.each([
    ['no-body', { body: '' }],
    ['no-header', { header: ' \n' }],
    ['no-secret', { secret: '  ' }],
    ['masked', { header: 'authorization: ***' }],
    ['no-signature', { header: 'host: a.example' }],
  ])('is reported as unreadable with the reason %s', async (reason, received) => {
    const verdict = await check(received);
    expect(verdict).toEqual({ kind: 'unreadable', reason });
    expect(formatVerdict(verdict, WEBHOOK.id).tone).toBe('neutral');
  });
});
