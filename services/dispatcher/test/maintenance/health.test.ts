import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  addMembership,
  type Database,
  listQuarantined,
  openDatabase,
  type PermissionSet,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, seedSubscription } from '@runhook/testing';
import { SMTPServer } from 'smtp-server';
import { refreshHealth } from '../../src/maintenance/health.ts';
import { type Mailer, openMailer, sendNotices } from '../../src/maintenance/notices.ts';
import { purge } from '../../src/maintenance/purge.ts';
import { testQuarantine } from '../silent-quarantine.ts';

interface Received {
  from: string;
  to: string[];
  text: string;
}

/** Decodes the subject, which is in the quoted form of RFC 2047. */
function summarize(mail: Received | undefined): string {
  const [, lines = ''] = /^Subject: (.*(?:\r\n .*)*)/m.exec(mail?.text ?? '') ?? [];
  const line = [...lines.matchAll(/=\?UTF-8\?Q\?(.*?)\?=/g)].map(([, word = '']) =>
    word.replaceAll('_', ' '),
  );
  return line
    .join('')
    .replace(/=([0-9A-F]{2})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

let database: PrismaDatabase;
/** With the role of the dispatchers. */
let dispatcher: Database;
let accountId: number;
let subscriptionId: string;
let quarantine: ReturnType<typeof testQuarantine>;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  database = openPrismaDatabase({ url: testDatabase.url });
  closers.push(() => database.close());
  dispatcher = openDatabase({ url: testDatabase.dispatcherUrl });
  closers.push(() => dispatcher.close());
  quarantine = testQuarantine(dispatcher.pool);
  accountId = (await seedAccount(database)).id;
  const clientUrl = 'https://receiver.example.com/secret/path';
  subscriptionId = (
    await seedSubscription(database, { accountId, clientUrl, name: 'Pager\r\nBcc: x@evil.example' })
  ).id;
  await addMember('ada@example.com', ['account_admin']);
  await addMember('bob@example.com', ['admin', 'developer']);
  await addMember('eve@example.com', ['developer']);
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function addMember(email: string, permissionSets: PermissionSet[]): Promise<void> {
  // Created without a password, whose hash would take longer than the test.
  const { id } = await database.prisma.user.create({
    data: { email, name: email, apiKeyHash: Buffer.from(email), apiKeyCiphertext: '' },
  });
  const userId = Number(id);
  await addMembership(database.prisma, { accountId, userId, license: 'developer', permissionSets });
}

const fail = (minutes: number, failures = 7) =>
  database.pool.query(
    `UPDATE subscriptions SET failing_since = now() - $2::int * interval '1 minute', consecutive_failures = $3,
       dispatched_at = now() WHERE id = $1`,
    [subscriptionId, minutes, failures],
  );
const succeed = () =>
  database.pool.query(
    'UPDATE subscriptions SET failing_since = NULL, consecutive_failures = 0, last_success_at = now() WHERE id = $1',
    [subscriptionId],
  );
const runHealthPass = (options: Partial<Parameters<typeof refreshHealth>[1]> = {}) =>
  refreshHealth(dispatcher.pool, { shouldNotifyAdmins: true, quarantine, ...options });
const subscription = () => database.prisma.subscription.findUniqueOrThrow({ where: { id: subscriptionId } });
const NO_CHANGES = { deactivated: 0, notifiedFailing: 0, notifiedRecovered: 0 };

/** Starts a real mail server with authentication. */
async function startMailServer({
  rejected = '',
} = {}): Promise<{ mailer: Mailer; received: Received[]; stop(): Promise<void> }> {
  const received: Received[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth(auth, _session, done) {
      const hasValidCredentials = auth.username === 'runhook' && auth.password === 'pass/word';
      done(hasValidCredentials ? null : new Error('who are you?'), { user: 'runhook' });
    },
    onRcptTo({ address }, _session, done) {
      done(address === rejected ? Object.assign(new Error('no such user'), { responseCode: 550 }) : null);
    },
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        received.push({ from, to, text: Buffer.concat(chunks).toString() });
        done();
      });
    },
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  const mailer = await openMailer(
    `smtp://runhook:pass%2Fword@127.0.0.1:${port}`,
    'Runhook <runhook@example.com>',
  );
  const stop = async () => {
    mailer.close();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  closers.push(stop);
  return { mailer, received, stop };
}

describe('an endpoint that has failed for an hour', () => {
  test('is reported to each admin of its account once by e-mail, and so is its recovery', async () => {
    const { mailer, received } = await startMailServer();
    await fail(59);
    expect(await runHealthPass()).toEqual(NO_CHANGES);
    await fail(61);
    expect(await runHealthPass()).toEqual({ ...NO_CHANGES, notifiedFailing: 1 });
    expect(await runHealthPass()).toEqual(NO_CHANGES);
    expect(await sendNotices(dispatcher.pool, mailer, quarantine)).toBe(2);
    expect(await sendNotices(dispatcher.pool, mailer, quarantine)).toBe(0);
    expect(received.map(({ to }) => to).sort()).toEqual([['ada@example.com'], ['bob@example.com']]);
    expect(received[0]).toMatchObject({ from: 'runhook@example.com' });
    expect(summarize(received[0])).toBe('Webhook "Pager Bcc: x@evil.example" is failing');
    expect(received[0]?.text).toContain('7 attempts in a row failed since 2');
    expect(received[0]?.text).toContain('https://receiver.example.com');
    expect(received[0]?.text).not.toContain('secret/path');
    expect(received[0]?.text).not.toMatch(/^Bcc:/m);

    await succeed();
    expect(await runHealthPass()).toEqual({ ...NO_CHANGES, notifiedRecovered: 1 });
    expect(await runHealthPass()).toEqual(NO_CHANGES);
    expect(await sendNotices(dispatcher.pool, mailer, quarantine)).toBe(2);
    for (const mail of received.slice(2)) expect(summarize(mail)).toMatch(/works again$/);
  });

  test('is reported to the other admins when the mail server rejects the address of one', async () => {
    const { mailer, received } = await startMailServer({ rejected: 'ada@example.com' });
    await fail(61);
    expect(await runHealthPass()).toEqual({ ...NO_CHANGES, notifiedFailing: 1 });
    await sendNotices(dispatcher.pool, mailer, quarantine);
    expect(received.map(({ to }) => to)).toEqual([['bob@example.com']]);
    expect(await listQuarantined(database.pool, { limit: 10 })).toMatchObject([
      { kind: 'notice', accountId, reason: expect.stringContaining('550') },
    ]);
  });

  test('is reported once to each admin when several dispatchers check and send concurrently', async () => {
    const { mailer, received } = await startMailServer();
    await fail(90);
    const results = await Promise.all(Array.from({ length: 8 }, () => runHealthPass()));
    expect(results.reduce((sum, { notifiedFailing }) => sum + notifiedFailing, 0)).toBe(1);
    const sent = await Promise.all(
      Array.from({ length: 4 }, () => sendNotices(dispatcher.pool, mailer, quarantine)),
    );
    expect(sent.reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(received).toHaveLength(2);
  });

  test('is reported as recovered and as failing if it did both between two checks', async () => {
    await fail(90);
    await runHealthPass();
    await database.pool.query("UPDATE subscriptions SET failure_notified_at = now() - interval '80 minutes'");
    await fail(70, 2);
    expect(await runHealthPass()).toEqual({ ...NO_CHANGES, notifiedRecovered: 1 });
    expect(await runHealthPass()).toEqual({ ...NO_CHANGES, notifiedFailing: 1 });
  });

  test('is reported after an outage of the mail server, once the claim of the failed notice has ended', async () => {
    const { mailer, stop } = await startMailServer();
    await stop();
    await fail(90);
    await runHealthPass();
    await expect(sendNotices(dispatcher.pool, mailer, quarantine)).rejects.toThrow();
    const recovered = await startMailServer();
    // The untried notice is free; the tried one is still claimed.
    expect(await sendNotices(dispatcher.pool, recovered.mailer, quarantine)).toBe(1);
    await database.pool.query('UPDATE notices SET claimed_until = now() WHERE sent_at IS NULL');
    expect(await sendNotices(dispatcher.pool, recovered.mailer, quarantine)).toBe(1);
    expect(recovered.received).toHaveLength(2);
  });

  test('is not reported while its webhook is inactive or deleted or without a mail server, and a new endpoint starts without failures', async () => {
    await fail(90);
    expect(await runHealthPass({ shouldNotifyAdmins: false })).toEqual(NO_CHANGES);
    await database.prisma.subscription.update({ where: { id: subscriptionId }, data: { active: false } });
    expect(await runHealthPass()).toEqual(NO_CHANGES);
    await database.prisma.subscription.update({ where: { id: subscriptionId }, data: { active: true } });
    expect(await subscription()).toMatchObject({ failingSince: null, consecutiveFailures: 0 });
    await fail(90);
    await runHealthPass();
    const moved = { clientUrl: 'https://other.example.com' };
    await database.prisma.subscription.update({ where: { id: subscriptionId }, data: moved });
    expect(await runHealthPass()).toEqual(NO_CHANGES);
    await fail(90);
    await database.prisma.subscription.update({
      where: { id: subscriptionId },
      data: { deletedAt: new Date() },
    });
    expect(await runHealthPass()).toEqual(NO_CHANGES);
  });

  test('has its notices deleted after the retention, even if they were not sent', async () => {
    await fail(90);
    await runHealthPass();
    await database.pool.query(
      "UPDATE notices SET created_at = now() - interval '31 days' WHERE email LIKE 'ada%'",
    );
    await purge(dispatcher.pool, { logRetentionDays: 30, runRetentionDays: 365 });
    expect(await database.prisma.notice.findMany()).toMatchObject([{ email: 'bob@example.com' }]);
  });

  test('has its incidents deleted when they ended before the retention began', async () => {
    const { accountId } = await database.prisma.subscription.findUniqueOrThrow({
      where: { id: subscriptionId },
    });
    const day = 86_400_000;
    const ended = (daysAgo: number) => new Date(Date.now() - daysAgo * day);
    for (const daysAgo of [31, 29])
      await database.prisma.incident.create({
        data: {
          accountId,
          subscriptionId,
          openedAt: ended(daysAgo + 1),
          closedAt: ended(daysAgo),
          failures: daysAgo,
        },
      });
    await purge(dispatcher.pool, { logRetentionDays: 30, runRetentionDays: 365 });
    expect(await database.prisma.incident.findMany()).toMatchObject([{ failures: 29 }]);
  });
});

describe('a webhook whose change PostgreSQL rejects', () => {
  test.each([
    ['marked as reported', { shouldNotifyAdmins: true }, 'notifiedFailing'],
    ['deactivated', { shouldNotifyAdmins: false, deactivateAfterFailures: 1 }, 'deactivated'],
  ] as const)('is set aside, and the webhooks of other accounts are %s', async (_, options, kind) => {
    const clientUrl = 'https://receiver.example.com';
    const others = [];
    for (let count = 0; count < 4; count++)
      others.push(
        await seedSubscription(database, { accountId: (await seedAccount(database)).id, clientUrl }),
      );
    const all = [subscriptionId, ...others.map(({ id }) => id)];
    for (subscriptionId of all) await fail(90);
    const [bad] = all;
    await database.pool.query(
      `ALTER TABLE subscriptions ADD CONSTRAINT reject
         CHECK (NOT (id = '${bad}' AND (failure_notified_at IS NOT NULL OR NOT active))) NOT VALID`,
    );
    expect(await runHealthPass(options)).toEqual({ ...NO_CHANGES, [kind]: 4 });
    expect(await listQuarantined(database.pool, { limit: 10 })).toMatchObject([
      { kind: 'status', key: bad, accountId, reason: expect.stringMatching(/^23514: /) },
    ]);
    expect(await runHealthPass(options)).toEqual(NO_CHANGES);
  });

  test('is set aside, and a webhook that was locked meanwhile is changed in the same pass', async () => {
    const other = await seedSubscription(database, { accountId, clientUrl: 'https://receiver.example.com' });
    const bad = subscriptionId;
    for (subscriptionId of [bad, other.id]) await fail(90);
    await database.pool.query(
      `ALTER TABLE subscriptions ADD CONSTRAINT reject CHECK (NOT (id = '${bad}' AND NOT active)) NOT VALID`,
    );
    const locking = await database.pool.connect();
    try {
      await locking.query('BEGIN');
      await locking.query('SELECT FROM subscriptions WHERE id = $1 FOR UPDATE', [other.id]);
      const unlocking = {
        async setAsideStatus(id: string, error: unknown) {
          await locking.query('COMMIT');
          await quarantine.setAsideStatus(id, error);
        },
      };
      const options = { shouldNotifyAdmins: false, deactivateAfterFailures: 1, quarantine: unlocking };
      expect(await runHealthPass(options)).toEqual({ ...NO_CHANGES, deactivated: 1 });
    } finally {
      locking.release();
    }
  });
});

const DAY_MINUTES = 24 * 60;

describe('automatic deactivation', () => {
  test.each([
    ['off by default', {}, 1_000, 400 * DAY_MINUTES, false],
    ['not triggered by fewer failures than the limit', { deactivateAfterFailures: 10 }, 9, 90, false],
    ['triggered by the number of failures', { deactivateAfterFailures: 10 }, 10, 1, true],
    [
      'not triggered by fewer days than the limit',
      { deactivateAfterDays: 3 },
      1_000,
      3 * DAY_MINUTES - 1,
      false,
    ],
    ['triggered by the number of days', { deactivateAfterDays: 3 }, 2, 3 * DAY_MINUTES, true],
    [
      'not triggered by failures only when both limits are set',
      { deactivateAfterFailures: 10, deactivateAfterDays: 3 },
      50,
      DAY_MINUTES,
      false,
    ],
    [
      'not triggered by days only when both limits are set',
      { deactivateAfterFailures: 10, deactivateAfterDays: 3 },
      9,
      9 * DAY_MINUTES,
      false,
    ],
    [
      'triggered by both limits',
      { deactivateAfterFailures: 10, deactivateAfterDays: 3 },
      10,
      3 * DAY_MINUTES,
      true,
    ],
  ])('is %s', async (_, options, failures, minutes, isDeactivated) => {
    await fail(minutes, failures);
    expect(await runHealthPass({ shouldNotifyAdmins: false, ...options })).toEqual({
      ...NO_CHANGES,
      deactivated: Number(isDeactivated),
    });
    const { active, deactivateReason } = await subscription();
    expect(active).toBe(!isDeactivated);
    if (isDeactivated)
      expect(deactivateReason).toMatch(
        new RegExp(`^Its endpoint failed ${failures} times in a row since 2.*Z\\.$`),
      );
  });

  test('counts the days from the first failed attempt to the latest', async () => {
    await fail(9 * DAY_MINUTES);
    await database.pool.query("UPDATE subscriptions SET dispatched_at = failing_since + interval '1 hour'");
    expect(await runHealthPass({ deactivateAfterDays: 3 })).toMatchObject({ deactivated: 0 });
  });

  test('counts days from the end of a block by Retry-After', async () => {
    await fail(9 * DAY_MINUTES);
    const setBlocked = (days: number) =>
      database.pool.query("UPDATE subscriptions SET blocked_until = now() - $1 * interval '1 day'", [days]);
    await setBlocked(2);
    expect(await runHealthPass({ deactivateAfterDays: 3 })).toMatchObject({ deactivated: 0 });
    await setBlocked(4);
    expect(await runHealthPass({ deactivateAfterDays: 3 })).toMatchObject({ deactivated: 1 });
  });

  test('notifies the admins, does not change `updated_at`, and ends when a user activates the subscription', async () => {
    const { mailer, received } = await startMailServer();
    await fail(90, 10);
    const { updatedAtMicros } = await subscription();
    expect(await runHealthPass({ deactivateAfterFailures: 10 })).toEqual({ ...NO_CHANGES, deactivated: 1 });
    expect((await subscription()).updatedAtMicros).toBe(updatedAtMicros);
    expect(await sendNotices(dispatcher.pool, mailer, quarantine)).toBe(2);
    expect(summarize(received[0])).toMatch(/was switched off$/);
    await database.prisma.subscription.update({ where: { id: subscriptionId }, data: { active: true } });
    const recovered = { active: true, deactivateReason: null, failingSince: null, consecutiveFailures: 0 };
    expect(await subscription()).toMatchObject(recovered);
    expect(await runHealthPass({ deactivateAfterFailures: 10 })).toEqual(NO_CHANGES);
  });
});
