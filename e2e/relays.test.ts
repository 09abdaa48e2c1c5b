import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHmacSecret, type EventType } from '@runhook/contract';
import { renderPayload, sampleEvent } from '@runhook/contract/samples';
import { type Receiver, startReceiver } from '@runhook/testing';

const RELAY = fileURLToPath(new URL('../examples/relays/relay.mjs', import.meta.url));
const SECRET = createHmacSecret();
const WEBHOOK = { id: 'wsu_1', name: 'Pager' };

/** Replaces Slack and the other targets. */
let target: Receiver;
let relay: ChildProcess | null = null;
let url: string;
let nextEvent = 1;

beforeEach(async () => {
  target = await startReceiver();
});
afterEach(async () => {
  if (relay !== null) {
    const exit = once(relay, 'exit');
    relay.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  }
  relay = null;
  await target.close();
});

async function start(env: Record<string, string>): Promise<void> {
  relay = spawn(process.execPath, [RELAY], {
    env: { ...process.env, NODE_OPTIONS: '', HMAC_SECRET: SECRET, TARGET_URL: target.url, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: relay.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  url = (JSON.parse((await lines.next()).value) as { listening: string }).listening;
}

function bodyOf(eventType: EventType): string {
  const eventId = `wev_${nextEvent++}`;
  return renderPayload(sampleEvent(eventType, { accountId: 1, eventId, now: new Date() }), WEBHOOK);
}

const signatureOf = (body: string, secret = SECRET) =>
  createHmac('sha256', secret).update(body).digest('hex');

async function deliver(body: string, headers: Record<string, string> = { authorization: signatureOf(body) }) {
  return (await fetch(url, { method: 'POST', body, headers })).status;
}

const sent = () => target.requests.map(({ body }) => JSON.parse(body.toString()));

describe('examples/relays/relay.mjs', () => {
  test.each([
    ['slack', { text: 'Daily job (sample) failed: run 12345 in Production. Two models failed' }],
    [
      'teams',
      {
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            content: { type: 'AdaptiveCard', body: [{ type: 'TextBlock', text: /failed: run 12345/ }] },
          },
        ],
      },
    ],
    ['discord', { content: /^Daily job \(sample\) failed/, allowed_mentions: { parse: [] } }],
    [
      'pagerduty',
      {
        routing_key: 'key',
        event_action: 'trigger',
        dedup_key: 'runhook-1-123',
        payload: { severity: 'error', source: 'Daily job (sample)', summary: /failed/ },
      },
    ],
  ])('posts a failed run in the format of %s', async (name, expected) => {
    await start({ TARGET: name, ROUTING_KEY: 'key' });
    expect(await deliver(bodyOf('job.run.errored'))).toBe(204);
    expect(sent()).toEqual([matching(expected)]);
    expect(target.requests[0]?.headers['content-type']).toBe('application/json');
  });

  test('resolves the PagerDuty incident when the next run of the job succeeds, and ignores its start', async () => {
    await start({ TARGET: 'pagerduty', ROUTING_KEY: 'key' });
    for (const type of ['job.run.errored', 'job.run.started', 'job.run.completed'] as const)
      expect(await deliver(bodyOf(type))).toBe(204);
    expect(sent().map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
      ['trigger', 'runhook-1-123'],
      ['resolve', 'runhook-1-123'],
    ]);
  });

  test('sends an event once, even if it arrives several times concurrently', async () => {
    await start({ TARGET: 'slack' });
    const body = bodyOf('job.run.completed');
    expect(await Promise.all([deliver(body), deliver(body), deliver(body)])).toEqual([204, 204, 204]);
    expect(sent()).toHaveLength(1);
    expect(await deliver(bodyOf('job.run.completed'))).toBe(204);
    expect(sent()).toHaveLength(2);
  });

  test('responds with 2xx only if the target did, and sends an event again that the target rejected', async () => {
    await start({ TARGET: 'discord' });
    const body = bodyOf('job.run.started');
    target.respondWith(429);
    expect(await deliver(body)).toBe(502);
    target.respondWith(204);
    expect(await deliver(body)).toBe(204);
    expect(await deliver(body)).toBe(204);
    expect(sent()).toHaveLength(2);
  });

  test('responds with 502 when the target is unreachable', async () => {
    await start({ TARGET: 'slack' });
    await target.close();
    expect(await deliver(bodyOf('job.run.started'))).toBe(502);
  });

  test('rejects requests without a valid signature, and sends nothing', async () => {
    await start({ TARGET: 'slack' });
    const body = bodyOf('job.run.errored');
    expect(await deliver(body, {})).toBe(401);
    expect(await deliver(body, { authorization: signatureOf(body, createHmacSecret()) })).toBe(401);
    expect(await deliver(`${body}\n`, { authorization: signatureOf(body) })).toBe(401);
    expect(await deliver('x'.repeat(1_000_001))).toBe(413);
    expect((await fetch(url)).status).toBe(405);
    expect(sent()).toEqual([]);
  });

  test('reads the signature from the header of the webhook', async () => {
    await start({ TARGET: 'slack', SIGNATURE_HEADER: 'X-Signature' });
    const body = bodyOf('job.run.errored');
    expect(await deliver(body)).toBe(401);
    expect(await deliver(body, { 'x-signature': signatureOf(body) })).toBe(204);
  });

  test.each([
    [{ TARGET: 'irc' }, 'TARGET must be one of slack, teams, discord, pagerduty'],
    [{ TARGET: 'pagerduty' }, 'ROUTING_KEY is not set'],
    [{ TARGET: 'slack', HMAC_SECRET: '' }, 'HMAC_SECRET is not set'],
  ])('exits with an error if its environment has %j', (env, problem) => {
    const environment = {
      ...process.env,
      NODE_OPTIONS: '',
      HMAC_SECRET: SECRET,
      TARGET_URL: target.url,
      ...env,
    };
    const { status, stderr } = spawnSync(process.execPath, [RELAY], { env: environment, encoding: 'utf8' });
    expect([status, stderr.includes(problem)]).toEqual([1, true]);
  });
});

/** Returns a matcher for an object with at least these members; a pattern matches a text. */
function matching(expected: unknown): unknown {
  if (expected instanceof RegExp) return expect.stringMatching(expected);
  if (Array.isArray(expected)) return expected.map(matching);
  if (typeof expected !== 'object' || expected === null) return expected;
  return expect.objectContaining(
    Object.fromEntries(Object.entries(expected).map(([key, value]) => [key, matching(value)])),
  );
}
