import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import {
  createTestQueueUrl,
  eventually,
  queueBackends,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { openRelayBench, type RelayBench } from './relay-bench.ts';

const AWAY = { level: 'error', message: 'the relay cannot move events; it keeps trying' };
const BACK = { level: 'info', message: 'the relay moves events again' };

let bench: RelayBench;
let proxy: TcpProxy;
beforeEach(async () => {
  bench = await openRelayBench();
});
afterEach(async () => {
  await bench.close();
  await proxy.close();
});

const idsOf = (events: readonly { eventId?: string | undefined }[]) => events.map(({ eventId }) => eventId);

describe.each(queueBackends())('while the queue on $name is away', (backend) => {
  let queueUrl: string;
  beforeEach(async () => {
    queueUrl = await createTestQueueUrl(backend, bench.databaseUrl);
    proxy = await startTcpProxy(queueUrl);
  });

  test('events wait, the outage is logged once, and all go on in order when it is back', async () => {
    const relay = bench.startRelay(bench.openQueue(proxy.url, {}));
    const committed = await bench.commit(3);
    relay.wake();
    await eventually(async () => expect(await relay.backlog()).toBe(0));

    await proxy.cut();
    let failures = 0;
    for (let round = 0; round < 3; round++) {
      committed.push(...(await bench.commit(2)));
      relay.wake();
    }
    await eventually(() => expect(bench.logged).toEqual([AWAY]));
    // A second failed try is what "once per outage" is about; its transaction is seen from outside.
    bench.database.pool.on('acquire', () => failures++);
    await eventually(() => expect(failures).toBeGreaterThanOrEqual(2));
    expect(await relay.backlog()).toBe(6);
    expect(bench.logged).toEqual([AWAY]);

    await proxy.restore();
    await eventually(async () => expect(await relay.backlog()).toBe(0));
    expect(idsOf(await bench.queued(queueUrl))).toEqual(idsOf(committed));
    await eventually(() => expect(bench.logged).toEqual([AWAY, BACK]));
  });

  test('a relay that starts meanwhile begins when the queue comes', async () => {
    await proxy.cut();
    const committed = await bench.commit(3);
    const relay = bench.startRelay(bench.openQueue(proxy.url, {}));
    await eventually(() => expect(bench.logged).toEqual([AWAY]));
    await proxy.restore();
    await eventually(async () => expect(await relay.backlog()).toBe(0));
    expect(idsOf(await bench.queued(queueUrl))).toEqual(idsOf(committed));
  });

  test('stop does not wait for it', async () => {
    await proxy.cut();
    await bench.commit(1);
    const relay = bench.startRelay(bench.openQueue(proxy.url, {}));
    await eventually(() => expect(bench.logged).toEqual([AWAY]));
    await relay.stop();
    expect(await relay.backlog()).toBe(1);
  });
});

test('a database that goes away in the middle of a batch ends nothing, and the batch is sent when it is back', async () => {
  const committed = await bench.commit(3);
  proxy = await startTcpProxy(bench.databaseUrl);
  const behindProxy = openDatabase({ url: proxy.url });
  const handed: (string | undefined)[][] = [];
  const relay = bench.startRelay(
    {
      add: async (events) => {
        handed.push(idsOf(events));
        if (handed.length === 1) await proxy.cut();
      },
    },
    { pool: behindProxy.pool, pollIntervalMs: 50 },
  );
  try {
    await eventually(() => expect(bench.logged).toEqual([AWAY]));
    expect(await bench.outboxCount()).toBe(3);
    await proxy.restore();
    await eventually(async () => expect(await bench.outboxCount()).toBe(0));
    expect(handed).toEqual([idsOf(committed), idsOf(committed)]);
    await eventually(() => expect(bench.logged).toEqual([AWAY, BACK]));
  } finally {
    await relay.stop();
    await behindProxy.close();
  }
});
