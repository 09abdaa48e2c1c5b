import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { addMembership, createUser } from '@runhook/database';
import {
  eventually,
  oneQueueBackend,
  seedSubscription,
  testEncryptionKeysText,
  testSecrets,
} from '@runhook/testing';
import { SMTPServer } from 'smtp-server';
import { readSettings } from '../src/settings.ts';
import { openHarness } from './harness.ts';

test.each(oneQueueBackend())(
  'one of two dispatchers on $name notifies the admin of an endpoint that fails',
  async (backend) => {
    const harness = await openHarness(backend);
    const recipients: string[] = [];
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData(stream, { envelope }, done) {
        stream.resume().on('end', () => {
          recipients.push(...envelope.rcptTo.map(({ address }) => address));
          done();
        });
      },
    });
    try {
      const listening = server.listen(0, '127.0.0.1');
      await once(listening, 'listening');
      const { prisma } = harness.database;
      const { id: accountId } = harness.account;
      const person = { email: 'ada@example.com', name: 'Ada', password: 'pass phrase' };
      const { id: userId } = await createUser(prisma, testSecrets, person);
      await addMembership(prisma, {
        accountId,
        userId,
        license: 'developer',
        permissionSets: ['account_admin'],
      });
      const { id } = await seedSubscription(harness.database, { accountId, clientUrl: harness.receiver.url });
      const failingSince = new Date(Date.now() - 7_200_000);
      await prisma.subscription.update({ where: { id }, data: { failingSince, consecutiveFailures: 12 } });
      const smtpUrl = `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`;
      const mail = { smtpUrl, mailFrom: 'runhook@example.com' };
      const dispatchers = [await harness.startDispatcher(mail), await harness.startDispatcher(mail)];
      await eventually(async () => {
        expect(await prisma.notice.findMany()).toMatchObject([{ kind: 'failing', sentAt: expect.any(Date) }]);
      });
      for (const { stop } of dispatchers) await stop();
      expect(recipients).toEqual(['ada@example.com']);
      expect(await prisma.notice.count()).toBe(1);
    } finally {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await harness.close();
    }
  },
);

test('SMTP_URL requires MAIL_FROM and the scheme smtp or smtps', () => {
  const environment = {
    DATABASE_URL: 'postgres://localhost/runhook',
    QUEUE_URL: 'postgres://localhost/runhook',
    ENCRYPTION_KEYS: testEncryptionKeysText,
  };
  expect(readSettings(environment)).not.toHaveProperty('smtpUrl');
  const SMTP_URL = 'smtps://runhook:secret@mail.example.com';
  expect(() => readSettings({ ...environment, SMTP_URL })).toThrow(/MAIL_FROM/);
  expect(() => readSettings({ ...environment, SMTP_URL: 'http://mail.example.com' })).toThrow(/SMTP_URL/);
  const MAIL_FROM = 'Runhook <runhook@example.com>';
  expect(readSettings({ ...environment, SMTP_URL, MAIL_FROM })).toMatchObject({
    smtpUrl: SMTP_URL,
    mailFrom: MAIL_FROM,
  });
});
