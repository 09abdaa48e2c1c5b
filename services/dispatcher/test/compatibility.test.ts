import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSecretBox, MIGRATION_NAMES, reencryptSecrets, requireKeys } from '@runhook/database';
import { createLogger, Lifecycle } from '@runhook/runtime';
import {
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedSubscription,
  testEncryptionKeys,
} from '@runhook/testing';
import { startDispatcher } from '../src/app.ts';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

const NEW_KEY = { name: 'newer', key: randomBytes(32) };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe.each(oneQueueBackend())('a dispatcher, on $name', (backend) => {
  let harness: Harness;
  let lifecycle: Lifecycle;
  beforeEach(async () => {
    harness = await openHarness(backend);
    lifecycle = new Lifecycle({ logger: createLogger({ service: 'dispatcher', level: 'silent' }) });
  });
  afterEach(async () => {
    await lifecycle.close('test');
    await harness.close();
  });

  const subscribe = () =>
    seedSubscription(harness.database, { accountId: harness.account.id, clientUrl: harness.receiver.url });
  const publish = (run: number) =>
    harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never, run));
  const rotate = () =>
    reencryptSecrets(harness.database.pool, [NEW_KEY, ...testEncryptionKeys] as [typeof NEW_KEY]);
  const renameMigration = (from: string, to: string) =>
    harness.database.pool.query(
      'UPDATE _prisma_migrations SET migration_name = $2 WHERE migration_name = $1',
      [from, to],
    );

  async function readiness(port: number) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    const live = await fetch(`http://127.0.0.1:${port}/healthz`);
    const { checks } = (await response.json()) as { checks: { [name: string]: { error?: string } } };
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const idle = /^runhook_dispatcher_idle\{[^}]*\} (\d)$/m.exec(metrics)?.[1];
    return { status: response.status, incompatibility: checks.compatibility?.error, live: live.status, idle };
  }

  test('takes no job and is not ready when it starts before the migration, and works once the migration is applied', async () => {
    await subscribe();
    const latest = MIGRATION_NAMES.at(-1) ?? '';
    await renameMigration(latest, 'of another build');
    await publish(1);
    // The port is chosen beforehand, because the dispatcher reports it only once it works.
    const port = await freePort();
    let isWorking = false;
    const logger = createLogger({ service: 'dispatcher', level: 'silent' });
    const starting = startDispatcher({ ...harness.settings, port }, lifecycle, logger).then(() => {
      isWorking = true;
    });
    await eventually(async () =>
      expect(await readiness(port)).toEqual({
        status: 503,
        incompatibility: 'SCHEMA_BEHIND',
        live: 200,
        idle: '1',
      }),
    );
    expect(isWorking).toBe(false);
    expect(await deliveriesOf(harness.database)).toEqual([]);
    await renameMigration('of another build', latest);
    await starting;
    await harness.receiver.waitFor(1);
    await eventually(async () =>
      expect(await readiness(port)).toEqual({
        status: 200,
        incompatibility: undefined,
        live: 200,
        idle: '0',
      }),
    );
  });

  test('leaves events to other dispatchers after a rotation of the encryption keys, and is ready once it can decrypt the secrets again', async () => {
    await subscribe();
    const { port } = await harness.startDispatcher();
    await publish(1);
    await harness.receiver.waitFor(1);
    await rotate();
    await eventually(async () =>
      expect(await readiness(port)).toEqual({
        status: 503,
        incompatibility: 'KEYS_UNKNOWN',
        live: 200,
        idle: '1',
      }),
    );
    await publish(2);
    await harness.startDispatcher({ encryptionKeys: [NEW_KEY] });
    await harness.receiver.waitFor(2);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status, attempt_count }) => [status, attempt_count])).toEqual([
        ['delivered', 1],
        ['delivered', 1],
      ]);
    });
    await reencryptSecrets(harness.database.pool, [...testEncryptionKeys, NEW_KEY] as [typeof NEW_KEY]);
    await eventually(async () => expect(await readiness(port)).toMatchObject({ status: 200, idle: '0' }));
  });

  test('takes jobs although it cannot decrypt the secret of one of several subscriptions', async () => {
    const other = await subscribe();
    await subscribe();
    const ciphertext = createSecretBox([NEW_KEY]).encrypt('whsec_x');
    await harness.database.pool.query('UPDATE subscriptions SET hmac_secret_ciphertext = $2 WHERE id = $1', [
      other.id,
      ciphertext,
    ]);
    const { port } = await harness.startDispatcher();
    await publish(1);
    await harness.receiver.waitFor(1);
    expect(await readiness(port)).toMatchObject({ status: 200, idle: '0' });
  });

  test('also checks the encryption keys of the next secrets of rotations in progress', async () => {
    const { id } = await subscribe();
    await harness.database.prisma.subscription.update({
      where: { id },
      data: {
        nextHmacSecretCiphertext: createSecretBox([NEW_KEY]).encrypt('whsec_x'),
        rotationStartedAt: new Date(),
        rotationEndsAt: new Date(Date.now() + 3_600_000),
      },
    });
    const { pool } = harness.database;
    expect(await requireKeys(pool, testEncryptionKeys)).toEqual({ unknown: ['newer'] });
    expect(await requireKeys(pool, [NEW_KEY, ...testEncryptionKeys])).toEqual({ unknown: [] });
  });
});
