import { afterEach, expect, test } from '@jest/globals';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  eventually,
  exampleEvent,
  queueBackends,
  seedAccount,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startService } from '../services.ts';
import { CleanupStack } from './cleanup-stack.ts';
import { startServers } from './servers.ts';

const WEBHOOKS = 1_000;
/** Number of requests after which the dispatcher is killed, while its pages are being processed. */
const REQUESTS_AT_KILL = 700;
/** Attempts that finished at least this long before a kill are in the log (docs/reliability.md). */
const RECORDED_WITHIN_MS = 500;

const cleanups: CleanupStack[] = [];
afterEach(async () => {
  for (const repetition of cleanups.splice(0)) await repetition.run();
});

test.each(queueBackends())(
  'the kill of a dispatcher during an event with 1,000 deliveries repeats only requests of the last half second, on $name',
  async ({ name }) => {
    const cleanup = new CleanupStack();
    cleanups.push(cleanup);
    const servers = await startServers(name);
    cleanup.add(() => servers.close());
    const receiver = await startReceiver();
    cleanup.add(() => receiver.close());
    const database = openPrismaDatabase({
      url: servers.databaseUrl,
      connectTimeoutMs: WAIT_TIMEOUT_MS,
      onConnectionError: () => undefined,
    });
    cleanup.add(() => database.close());
    const account = await seedAccount(database);
    await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
    await database.pool.query(
      `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active, hmac_secret_ciphertext)
       SELECT left(s.id, 20) || lpad(n::text, 11, '0'), account_id, name || n, description, event_types, job_ids,
              client_url, active, hmac_secret_ciphertext
       FROM subscriptions s, generate_series(1, ${WEBHOOKS - 1}) AS n`,
    );
    // The delay makes the requests of a page take longer than its commit, as with a remote endpoint.
    receiver.respondWith(() => ({ status: 200, delayMs: 20 }));
    // The second dispatcher leaves requests to the first one for the maximum duration of an attempt.
    const environment = {
      DATABASE_URL: servers.databaseUrl,
      QUEUE_URL: servers.queueUrl,
      DELIVERY_TIMEOUT_MS: '2000',
    };
    const first = await startService('dispatcher', environment);
    cleanup.add(() => first.kill());
    const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
    cleanup.add(() => publisher.close());
    await publisher.publish(exampleEvent('job.run.started', account.jobs[0] as never));
    await receiver.waitFor(REQUESTS_AT_KILL);
    await first.kill();
    const killedAtMs = Date.now();
    const sent = [...receiver.requests];
    const second = await startService('dispatcher', environment);
    cleanup.add(() => second.stop());
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `SELECT count(*)::int AS count FROM deliveries WHERE status = 'delivered'`,
      );
      expect(rows).toEqual([{ count: WEBHOOKS }]);
    });
    const webhookOf = ({ body }: (typeof sent)[number]) => JSON.parse(String(body)).webhooksID as string;
    const counts = new Map<string, number>();
    for (const request of receiver.requests)
      counts.set(webhookOf(request), (counts.get(webhookOf(request)) ?? 0) + 1);
    const repeated = sent.filter((request) => (counts.get(webhookOf(request)) ?? 0) > 1);
    const receivedBeforeKill = repeated.filter(
      ({ receivedAt }) => receivedAt < killedAtMs - RECORDED_WITHIN_MS,
    );
    process.stderr.write(
      `queue on ${name}: ${sent.length} sent before the kill, over ${killedAtMs - (sent[0]?.receivedAt ?? 0)} ms; ${repeated.length} repeated, ${receivedBeforeKill.length} of them sent earlier than ${RECORDED_WITHIN_MS} ms before\n`,
    );
    expect(counts.size).toBe(WEBHOOKS);
    expect(receivedBeforeKill).toHaveLength(0);
  },
  300_000,
);
