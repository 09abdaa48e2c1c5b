// npm run build -- golden: writes packages/contract/golden/, deliveries and events that implementations in any language can be
// tested against, and the messages of each format. node:crypto computes the signatures here by the rules of docs/contract.md#signing, because the code under test
// must not compute its own expectations.
import { createHmac } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { readArguments, usage } from '../shared/arguments.mjs';
import { root } from '../shared/workspace.mjs';
import { bootstrap } from './bootstrap.mjs';
import { goldenEd25519 } from './golden-ed25519.mjs';

const USAGE = usage({
  call: 'npm run build -- golden [--check]',
  purpose: 'writes packages/contract/golden/, test vectors of deliveries and events for any language',
  duration: 'seconds',
  prerequisites: 'none; --check needs a built checkout (npm run build)',
  details: '--check  compares without writing',
});

const { check: isCheck } = readArguments(USAGE, { options: { check: { type: 'boolean' } } }).values;
if (!isCheck) await bootstrap();
const { parseEvent, renderPayload, sampleEvent } = await import('../../packages/contract/dist/index.js');
const { FORMATS } = await import('../../packages/contract/dist/formats/registry.js');

const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
/** The base64 contains a slash and a plus, which a URL-safe decoder would reject or skip. */
const NEXT_SECRET = 'whsec_/+8BAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4=';
const SUBSCRIPTION = { id: 'wsu_2Zk0fGq5mH4s8JrXc1VbNwTyUeA', name: 'Nightly – run «alerts»' };
const SIGNED_AT = 1_769_887_881;
const TOLERANCE_SECONDS = 300;
const SIGNED_MS = SIGNED_AT * 1000;

const RUN = {
  jobId: '123',
  jobName: 'Daily build',
  runId: '12345',
  environmentId: '1234',
  environmentName: 'Production',
  engineVersion: '1.9.2',
  projectName: 'Warehouse "Demo"',
  projectId: '5678',
  runStatus: 'Running',
  runStatusCode: 3,
  runStatusMessage: 'None',
  runReason: 'Started by Zoë 🚀',
  runStartedAt: '2026-01-31T19:28:07Z',
};
const IDENTITY = {
  eventId: 'wev_2Zk0fHXpQ1aBcDeFgHiJkLmNoPq',
  accountId: 1,
  timestamp: '2026-01-31T19:31:20.742812345Z',
};
const STARTED = { ...IDENTITY, eventType: 'job.run.started', data: RUN };
const COMPLETED = {
  ...IDENTITY,
  eventType: 'job.run.completed',
  data: { ...RUN, runStatus: 'Success', runStatusCode: 10, runFinishedAt: '2026-01-31T19:31:20Z' },
};
const ERRORED = {
  ...IDENTITY,
  eventType: 'job.run.errored',
  data: {
    ...RUN,
    runStatus: 'Errored',
    runStatusCode: 20,
    runStatusMessage: 'Model "a" failed:\n\tline 1\u0000',
    runErroredAt: '2026-01-31T19:31:19Z',
  },
};
const withData = (data) => ({ ...STARTED, data: { ...RUN, ...data } });

/** Published events, each with its exact body for {@link SUBSCRIPTION} or with `problem`, the first invalid field. */
const EVENTS = {
  'a run started': STARTED,
  'a run completed': COMPLETED,
  'a run errored': ERRORED,
  'Unicode beyond the BMP, right to left, combining, and what JavaScript takes for a line end': withData({
    jobName: 'שלום 日本語 e\u0301 👩‍👩‍👧 \u2028\u2029 \ufeff',
  }),
  'all that JSON escapes, and a slash, which it does not': withData({
    runStatusMessage: '"\\/\b\f\n\r\t\u0001\u001f\u007f</script> \\u0041 \\\\n',
  }),
  'half a surrogate pair, which becomes U+FFFD': withData({ runReason: 'cut \ud83d off' }),
  'NUL, which becomes U+FFFD, the word None, the word null, and nothing at all': withData({
    runStatusMessage: '\u0000',
    runReason: 'None',
    engineVersion: 'null',
    environmentName: '',
  }),
  'the largest numbers that are exact': {
    ...withData({ jobId: '9007199254740991', runId: '9007199254740991', runStatusCode: -9007199254740991 }),
    accountId: 9007199254740991,
  },
  'a time without a fraction, which is padded': { ...STARTED, timestamp: '2026-01-31T19:31:20Z' },
  'an unknown field, which is dropped': { ...withData({ colour: 'red' }), webhookName: 'mine' },
  'an account as text': { ...STARTED, accountId: '1' },
  'a job id as a number': withData({ jobId: 123 }),
  'an id with a leading zero': withData({ runId: '0123' }),
  'an id that is no longer exact': withData({ runId: '9007199254740993' }),
  'null for a text': withData({ runReason: null }),
  'a code as text': withData({ runStatusCode: '3' }),
  'a fraction for a code': withData({ runStatusCode: 3.5 }),
  'a time with a fraction where there is none': withData({ runStartedAt: '2026-01-31T19:28:07.000Z' }),
  'a day that no calendar has': withData({ runStartedAt: '2026-02-30T19:28:07Z' }),
  'another time zone': { ...STARTED, timestamp: '2026-01-31T20:31:20+01:00' },
  'a run that completed without its time': { ...COMPLETED, data: RUN },
  'a type that there is not': { ...STARTED, eventType: 'job.run.paused' },
  'an id that is none': { ...STARTED, eventId: 'wev_1' },
};

function goldenEvents() {
  const nowMs = SIGNED_MS;
  const defaults = { eventId: () => STARTED.eventId, timestampMs: nowMs, nowMs, retentionDays: 3_650 };
  const events = Object.entries(EVENTS).map(([name, published]) => {
    const { event, problems } = parseEvent(published, defaults);
    if (problems) return { name, published, problem: problems[0].field };
    return { name, published, body: renderPayload(event, SUBSCRIPTION) };
  });
  return { about: ABOUT.events, subscription: SUBSCRIPTION, nowMs, events };
}

const hexSignature = (body, secret) => createHmac('sha256', secret).update(body, 'utf8').digest('hex');
const standardSignature = (body, secret, id, seconds) => {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`, 'utf8').digest('base64')}`;
};

/** Returns a delivery of the body as Runhook makes it, with the first secret for the receiver and a clock that is one second later. */
function createDelivery(name, body, secrets = [SECRET]) {
  const id = IDENTITY.eventId;
  return {
    name,
    body,
    bodyBase64: Buffer.from(body, 'utf8').toString('base64'),
    headers: {
      authorization: hexSignature(body, secrets[0]),
      'webhook-id': id,
      'webhook-timestamp': String(SIGNED_AT),
      'webhook-signature': secrets.map((secret) => standardSignature(body, secret, id, SIGNED_AT)).join(' '),
    },
    secrets: [secrets[0]],
    nowMs: SIGNED_MS + 1_000,
    genuine: { authorization: true, standardWebhooks: true },
  };
}

function goldenDeliveries(events) {
  const bodies = events.filter(({ body }) => body !== undefined);
  const [{ body }] = bodies;
  const one = (name, change, authorization, standardWebhooks, made = createDelivery(name, body)) => {
    const changed = change(made);
    const headers = { ...made.headers, ...changed.headers };
    const text = changed.body ?? made.body;
    const bodyBase64 = Buffer.from(text, 'utf8').toString('base64');
    return { ...made, ...changed, bodyBase64, headers, genuine: { authorization, standardWebhooks } };
  };
  const other = (name, change) => one(name, change, false, false);
  const rotated = (name, secrets, authorization) =>
    one(name, () => ({ secrets }), authorization, true, createDelivery(name, body, [SECRET, NEXT_SECRET]));
  return {
    about: ABOUT.deliveries,
    toleranceSeconds: TOLERANCE_SECONDS,
    deliveries: [
      ...bodies.map((event) => createDelivery(event.name, event.body)),
      createDelivery(
        'white space and an order of its own: bytes are signed, not what they mean',
        `{ "b":1.0,\n"a":"\\u00e9" }\n`,
      ),
      createDelivery('an empty body', ''),
      createDelivery('a secret with a slash and a plus', body, [NEXT_SECRET]),
      rotated('a rotation, for a receiver with the old secret', [SECRET], true),
      rotated('a rotation, for a receiver with the new secret', [NEXT_SECRET], false),
      rotated('a rotation, for a receiver with both', [NEXT_SECRET, SECRET], true),
      other('a line end behind the body', () => ({ body: `${body}\n` })),
      other('a byte order mark before the body', () => ({ body: `\ufeff${body}` })),
      other('the body written again with white space', () => ({
        body: JSON.stringify(JSON.parse(body), null, 1),
      })),
      other('the body written again in ASCII', () => ({ body: toAsciiJson(body) })),
      other('another secret', () => ({ secrets: [NEXT_SECRET] })),
      one(
        'a signature in capitals',
        ({ headers }) => ({ headers: { authorization: headers.authorization.toUpperCase() } }),
        false,
        true,
      ),
      one(
        'a signature with sha256= before it',
        ({ headers }) => ({ headers: { authorization: `sha256=${headers.authorization}` } }),
        false,
        true,
      ),
      one(
        'a signature cut short',
        ({ headers }) => ({ headers: { authorization: headers.authorization.slice(0, 63) } }),
        false,
        true,
      ),
      one(
        'the secret without whsec_, decoded, for Authorization',
        () => ({
          headers: {
            authorization: createHmac('sha256', Buffer.from(SECRET.slice(6), 'base64'))
              .update(body)
              .digest('hex'),
          },
        }),
        false,
        true,
      ),
      one(
        'the whole text of the secret, for webhook-signature',
        () => ({
          headers: {
            'webhook-signature': `v1,${createHmac('sha256', SECRET).update(`${IDENTITY.eventId}.${SIGNED_AT}.${body}`).digest('base64')}`,
          },
        }),
        true,
        false,
      ),
      one('another time', () => ({ headers: { 'webhook-timestamp': String(SIGNED_AT + 1) } }), true, false),
      one(
        'another event id',
        () => ({ headers: { 'webhook-id': 'wev_2Zk0fHXpQ1aBcDeFgHiJkLmNoPr' } }),
        true,
        false,
      ),
      one(
        'another version of signatures',
        ({ headers }) => ({
          headers: { 'webhook-signature': headers['webhook-signature'].replace('v1,', 'v2,') },
        }),
        true,
        false,
      ),
      one(
        'signatures of others before the right one',
        ({ headers }) => ({
          headers: { 'webhook-signature': `v1a,AAAA v1, ${headers['webhook-signature']}` },
        }),
        true,
        true,
      ),
      one('signed as long ago as may be', () => ({ nowMs: SIGNED_MS + 300_000 }), true, true),
      one('signed too long ago', () => ({ nowMs: SIGNED_MS + 301_000 }), true, false),
      one('signed by a clock as far ahead as may be', () => ({ nowMs: SIGNED_MS - 300_000 }), true, true),
      one('signed in the future', () => ({ nowMs: SIGNED_MS - 301_000 }), true, false),
      one('a time that is none', () => ({ headers: atTime('soon') }), true, false),
    ],
  };

  function atTime(seconds) {
    return {
      'webhook-timestamp': seconds,
      'webhook-signature': standardSignature(body, SECRET, IDENTITY.eventId, seconds),
    };
  }
}

/** Returns golden vectors of the queue's shards: slots by the rules of docs/contract.md#shards, and a stored map of three shards. */
function goldenShards() {
  const count = 1_024;
  const slots = Array.from({ length: count }, (_, slot) => slot % 3);
  const prefixes = ['{runhook}', '{runhook:1}', '{runhook:2}'];
  const accountIds = [1, 2, 3, 42, 12_345, 4_294_967_296, 9_007_199_254_740_991];
  const changed = (shard) => JSON.stringify([...slots.slice(1), shard]);
  return {
    about: ABOUT.shards,
    key: '{runhook}:shards',
    slots: count,
    map: { version: '7', slots: JSON.stringify(slots), draining: '[3]' },
    accounts: accountIds.map((accountId) => {
      const slot = crc32(String(accountId)) % count;
      return { accountId, slot, prefix: prefixes[slots[slot]] };
    }),
    rejected: [
      '',
      '{}',
      JSON.stringify(slots.slice(1)),
      changed(64),
      changed(-1),
      changed('1'),
      changed(1.5),
    ],
  };
}

/** Texts for the rules of docs/contract.md#text, as code units: JSON of most languages cannot represent invalid text. */
const TEXTS = {
  ASCII: 'Daily build',
  'every plane that has letters': 'Zo\u00eb \u65e5\u672c \u{1f680} \u{20000}',
  'control characters, which are valid': '\u0001\t\n\u001f\u007f\u0080',
  'a byte order mark, and the last characters of the private planes': '\ufeff\u{ffffd}\u{10fffd}',
  'a letter with a hundred combining marks': `a${'\u0301'.repeat(100)}`,
  NUL: 'a\0b',
  'the first half of a pair at the end': 'cut \ud83d',
  'the first half of a pair in the middle': 'cut \ud83d off',
  'the second half of a pair': '\ude80 cut',
  'both halves in the wrong order': '\ude80\ud83d',
  'a half before a pair': '\ud83d\u{1f680}',
  'a half behind a pair': '\u{1f680}\ude80',
  'the first and the last half': '\ud800\u0020\udbff\u0020\udc00\u0020\udfff',
  'U+FFFE and U+FFFF': '\ufffe\uffff',
  'their valid neighbours': '\ufffc\ufffd',
  'the noncharacters of the first plane': '\ufdcf\ufdd0\ufddf\ufdef\ufdf0',
  'the last two of each plane': Array.from({ length: 17 }, (_, plane) =>
    String.fromCodePoint(plane * 0x10000 + 0xfffe, plane * 0x10000 + 0xffff),
  ).join(''),
  nothing: '',
};

function goldenTexts() {
  const texts = Object.entries(TEXTS).map(([name, text]) => {
    // Computed by the rules of the contract, independently of the code that these vectors test.
    const codePoints = [...text].map((character) => character.codePointAt(0));
    const repaired = codePoints.map((point) => (isInvalid(point) ? 0xfffd : point));
    const utf16 = Buffer.from(text, 'utf16le').swap16().toString('hex');
    return {
      name,
      utf16,
      valid: !codePoints.some(isInvalid),
      codePoints: codePoints.length,
      repaired: String.fromCodePoint(...repaired),
    };
  });
  return { about: ABOUT.texts, texts };
}

function isInvalid(point) {
  const isSurrogate = point >= 0xd800 && point <= 0xdfff;
  return point === 0 || isSurrogate || (point >= 0xfdd0 && point <= 0xfdef) || (point & 0xfffe) === 0xfffe;
}

/** Escapes all characters beyond ASCII, as many JSON writers do by default. */
function toAsciiJson(text) {
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const ABOUT = {
  events:
    'Events as they are published on the queue. body: what is sent for the subscription, byte for byte in UTF-8; ' +
    'problem: the field that an event is rejected for. nowMs: the time at which it is published.',
  deliveries:
    'Deliveries as they arrive. body and bodyBase64 are the same bytes; secrets: what the receiver holds, each of which ' +
    'may be right; nowMs: its clock; genuine: what a receiver must say that checks Authorization, and one that checks the ' +
    'Standard Webhooks headers with toleranceSeconds.',
  ed25519:
    'Deliveries with Ed25519 signatures, as in deliveries.json. publicKeys: what the receiver holds, each of which may be ' +
    'right; genuine: what a receiver must say that accepts these signatures only. keys: all key pairs, those of RFC 8032.',
  texts:
    'Texts as UTF-16 code units in hexadecimal, the high byte first. valid: whether it may be configured; codePoints: its ' +
    'length; repaired: what becomes of it where a job runner reports it.',
  shards:
    'Shards of a queue on Redis. map: a hash as it may be at key; accounts: the slot of each, and the prefix of the queue ' +
    'that it leads to by this map; rejected: slots of an invalid map, with which nothing may be published.',
};

/** Returns the messages of a format: a sample of each type, and a failed run that is complete. */
function goldenMessages(format) {
  const identity = { accountId: 1, eventId: IDENTITY.eventId, now: new Date('2026-01-31T19:31:20.742Z') };
  const types = ['job.run.started', 'job.run.completed', 'job.run.errored'];
  const events = types.map((type) => sampleEvent(type, identity));
  const { data } = events[1];
  const failure = { runStatus: 'Errored', runStatusCode: 20, runStatusMessage: 'Two models failed' };
  events.push({ ...events[1], data: { ...data, ...failure } });
  const input = {
    subscription: SUBSCRIPTION,
    consoleUrl: 'https://runhook.example',
    options: Object.fromEntries(
      Object.keys(format.options).map((name) => [name, '0123456789abcdef'.repeat(2)]),
    ),
  };
  const messages = events.map((event) => {
    const { body, nothing } = format.render({ event, ...input });
    return { event, ...(body === undefined ? { nothing } : { body: JSON.parse(body) }) };
  });
  return { ...input, messages };
}

const golden = goldenEvents();
const vectors = {
  'events.json': golden,
  'deliveries.json': goldenDeliveries(golden.events),
  'ed25519.json': goldenEd25519({
    about: ABOUT.ed25519,
    events: golden.events.filter(({ body }) => body !== undefined),
    id: IDENTITY.eventId,
    signedAt: SIGNED_AT,
    toleranceSeconds: TOLERANCE_SECONDS,
    signature: (body, id, seconds) => standardSignature(body, SECRET, id, seconds),
  }),
  'shards.json': goldenShards(),
  'texts.json': goldenTexts(),
};
const contract = join(root, 'packages', 'contract');
mkdirSync(join(contract, 'golden'), { recursive: true });
const files = [
  ...Object.entries(vectors).map(([name, content]) => [`golden/${name}`, content]),
  ...FORMATS.map((format) => [`src/formats/${format.name}/golden.json`, goldenMessages(format)]),
];
for (const [name, content] of files) {
  const path = join(contract, name);
  const text = `${JSON.stringify(content, null, 2)}\n`;
  const current = existsSync(path) ? readFileSync(path, 'utf8') : null;
  if (current === text) continue;
  if (!isCheck) {
    writeFileSync(path, text);
    continue;
  }
  process.stderr.write(`packages/contract/${name} differs from the output of npm run build -- golden\n`);
  process.exitCode = 1;
}
