import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { migrate } from '@runhook/database/migrate';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { findFreePort } from '@runhook/embedded';
import { createEventPublisher } from '@runhook/publisher';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  seedAccount,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { selectServerAccount } from '../packages/embedded/src/server-process.ts';
import { startService } from './services.ts';

/** Debian's programs, a server with the client of its version. The embedded server has no pg_dump. */
const programs = findPrograms('/usr/lib/postgresql');
if (programs === null)
  process.stderr.write('\nno backup is restored here: /usr/lib/postgresql has no server with its pg_dump\n');
const testWithPrograms = programs === null ? test.skip : test;

function findPrograms(folder: string): string | null {
  const versions = existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => join(folder, version, 'bin'));
  const hasAllPrograms = (bin: string) =>
    ['postgres', 'pg_dump'].every((name) => existsSync(join(bin, name)));
  return folders.find(hasAllPrograms) ?? null;
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const runOf = ({ body }: { body: Buffer }) => JSON.parse(body.toString()).data.runId as string;

/** Starts a separate server. `run` executes a program of its version. */
async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'runhook-restore-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const account = selectServerAccount(folder);
  if (account !== null) chownSync(folder, account.uid, account.gid);
  const run = (program: string, ...args: string[]) => {
    const identity = account === null ? {} : { uid: account.uid, gid: account.gid };
    // The server that pg_ctl starts inherits its streams.
    const { status } = spawnSync(join(programs as string, program), args, {
      ...identity,
      cwd: folder,
      stdio: 'ignore',
    });
    expect([program, status]).toEqual([program, 0]);
  };
  const { port } = await findFreePort();
  const data = join(folder, 'data');
  run('initdb', '-D', data, '-U', 'runhook', '--auth=trust', '--locale=C', '--encoding=UTF8', '--no-sync');
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off`;
  run('pg_ctl', 'start', '-w', '-D', data, '-o', options);
  closers.push(() => run('pg_ctl', 'stop', '-w', '-m', 'immediate', '-D', data));
  return { folder, run, urlOf: (database: string) => `postgres://runhook@127.0.0.1:${port}/${database}` };
}

testWithPrograms(
  'a backup that was taken while a delivery was pending is restored into a new database, where deliveries continue',
  async () => {
    const { folder, run, urlOf } = await startServer();
    run('createdb', '--maintenance-db', urlOf('postgres'), 'before');
    await migrate(urlOf('before'));
    const before = openPrismaDatabase({ url: urlOf('before'), connectTimeoutMs: WAIT_TIMEOUT_MS });
    closers.push(() => before.close());
    const { id: accountId, jobs } = await seedAccount(before);
    const receiver = await startReceiver({
      respond: (request) => ({ status: runOf(request) === '2' ? 503 : 204 }),
    });
    closers.push(() => receiver.close());
    const subscription = await seedSubscription(before, { accountId, clientUrl: receiver.url });
    const runsReceived = () => receiver.requests.map(runOf);
    const statuses = (database: typeof before) =>
      database.prisma.delivery
        .findMany({ orderBy: { createdAt: 'asc' }, select: { status: true } })
        .then((rows) => rows.map(({ status }) => status));

    /** Starts a dispatcher on a database with an empty queue. */
    const continueWith = async (name: string, own: Record<string, string> = {}) => {
      const queue = await createTestDatabase();
      closers.push(() => queue.drop());
      const queueUrl = await createTestQueueUrl(queueBackends().at(-1) as never, queue.url);
      const settings = {
        QUEUE_URL: queueUrl,
        DATABASE_URL: urlOf(name),
        ...own,
      };
      const dispatcher = await startService('dispatcher', settings);
      closers.push(() => dispatcher.stop());
      const publisher = createEventPublisher({ queueUrl });
      closers.push(() => publisher.close());
      return {
        dispatcher,
        publish: (runId: number) =>
          publisher.publish(exampleEvent('job.run.started', jobs[0] as never, runId)),
      };
    };

    // The retry of the failed delivery is due after the backup.
    const first = await continueWith('before', { RETRY_BASE_DELAY_MS: '3600000' });
    await first.publish(1);
    await first.publish(2);
    await eventually(async () => expect((await statuses(before)).sort()).toEqual(['delivered', 'pending']));
    run('pg_dump', '--format=custom', '--no-owner', '--file', join(folder, 'backup'), urlOf('before'));
    await first.dispatcher.kill();

    run('createdb', '--maintenance-db', urlOf('postgres'), 'after');
    run(
      'pg_restore',
      '--no-owner',
      '--no-privileges',
      '--exit-on-error',
      '--dbname',
      urlOf('after'),
      join(folder, 'backup'),
    );
    expect(await migrate(urlOf('after'))).toEqual([]);
    receiver.respondWith(204);
    const after = openPrismaDatabase({ url: urlOf('after'), connectTimeoutMs: WAIT_TIMEOUT_MS });
    closers.push(() => after.close());
    // Makes the deliveries overdue, as after a restore of several hours, so that the reconciler enqueues them again.
    await after.pool.query(
      `UPDATE deliveries SET next_attempt_at = now() - interval '1 hour' WHERE status = 'pending'`,
    );
    const second = await continueWith('after');
    await second.publish(3);
    await eventually(async () =>
      expect(await statuses(after)).toEqual(['delivered', 'delivered', 'delivered']),
    );

    // Deliveries that are recorded as delivered are not sent again. The secret is decrypted with the former key.
    expect(runsReceived().filter((runId) => runId === '1')).toHaveLength(1);
    expect(runsReceived()).toContain('3');
    const last = receiver.requests.at(-1);
    const signature = createHmac('sha256', subscription.hmacSecret)
      .update(last?.body ?? '')
      .digest('hex');
    expect(last?.headers.authorization).toBe(signature);
  },
);
