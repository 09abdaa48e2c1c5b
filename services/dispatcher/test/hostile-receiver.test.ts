import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually, exampleEvent, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf } from './log-rows.ts';

let harness: Harness;
beforeEach(async () => {
  harness = await openHarness({ name: 'PostgreSQL' });
});
afterEach(() => harness.close());

test('deliveries succeed whose response is endless, a gzip bomb, or NUL bytes and invalid UTF-8, and the log stores at most the first 16,384 bytes of it', async () => {
  const responses = {
    endless: { drip: { bytes: 65_536, intervalMs: 1 } },
    bomb: { headers: { 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(20_000_000)) },
    bytes: { body: Buffer.from([0x00, 0xff, 0xc3, 0x28, 0x61]) },
  };
  for (const name of Object.keys(responses)) {
    const clientUrl = `${harness.receiver.url}/${name}`;
    await seedSubscription(harness.database, { accountId: harness.account.id, clientUrl, name });
  }
  harness.receiver.respondWith(({ path }) => responses[path.slice(1) as keyof typeof responses]);
  await harness.startDispatcher({ deliveryMaxRetries: 0, deliveryTimeoutMs: 600_000 });
  await harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never));

  const deliveries = await eventually(
    async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered']);
      return rows;
    },
    { timeoutMs: 60_000 },
  );
  const attemptByName = new Map<string, Awaited<ReturnType<typeof attemptsOf>>[number] | undefined>();
  for (const { id, webhook_name } of deliveries) {
    attemptByName.set(webhook_name, (await attemptsOf(harness.database, id))[0]);
  }
  expect(attemptByName.get('endless')).toMatchObject({ response_truncated: true });
  expect(attemptByName.get('endless')?.response_body).toHaveLength(16_384);
  expect(Buffer.byteLength(attemptByName.get('bomb')?.response_body ?? '')).toBeLessThan(100_000);
  expect(attemptByName.get('bytes')?.response_body).toBe('\uFFFD\uFFFD\uFFFD(a');
}, 90_000);

test('a delivery whose response 200 has a truncated body succeeds with one request, and the log marks the body', async () => {
  harness.receiver.handleWith((request, response) => {
    request.once('end', () => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half', () => response.socket?.end());
    });
    request.resume();
  });
  const clientUrl = harness.receiver.url;
  await seedSubscription(harness.database, { accountId: harness.account.id, clientUrl, name: 'cut off' });
  await harness.startDispatcher();
  await harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never));
  const delivery = await eventually(async () => {
    const [row] = await deliveriesOf(harness.database);
    expect(row).toMatchObject({ status: 'delivered', attempt_count: 1, http_status_code: 200 });
    return row as NonNullable<typeof row>;
  });
  expect(await attemptsOf(harness.database, delivery.id)).toEqual([
    expect.objectContaining({ error_code: null, response_body: 'half', response_truncated: true }),
  ]);
  expect(harness.receiver.requests).toHaveLength(1);
}, 90_000);

test('after three costly responses in a row an endpoint gets one request at a time, and all its deliveries', async () => {
  const CHUNKS = 1_000;
  let inFlight = 0;
  let inFlightMax = 0;
  harness.receiver.handleWith((request, response) => {
    inFlight += 1;
    inFlightMax = Math.max(inFlightMax, inFlight);
    response.once('close', () => {
      inFlight -= 1;
    });
    request.once('end', () => {
      for (let chunk = 0; chunk < CHUNKS; chunk += 1) response.write('x');
      response.end();
    });
  });
  await seedSubscription(harness.database, {
    accountId: harness.account.id,
    clientUrl: harness.receiver.url,
    name: 'costly',
  });
  await harness.startDispatcher();
  const job = harness.account.jobs[0] as never;
  const publish = (count: number) =>
    harness.publisher.publishMany(
      Array.from({ length: count }, (_, run) => exampleEvent('job.run.started', job, run + 1)),
    );
  const expectAllDelivered = (count: number) =>
    eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(count);
    });
  // Three costly responses in a row limit the endpoint.
  await publish(3);
  await expectAllDelivered(3);
  inFlightMax = 0;
  await publish(10);
  await expectAllDelivered(13);
  expect(inFlightMax).toBe(1);
  expect(harness.receiver.requests).toHaveLength(13);
}, 90_000);
