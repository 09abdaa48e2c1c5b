import { createHmacSecret } from '@runhook/contract';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import type { Bench, Row } from '../bench.ts';
import { readCpu } from '../measure/cpu.ts';
import type { MinimalSettings } from '../programs/minimal.ts';
import { type Program, startProgram } from '../programs/program.ts';
import { createEndpointUrls, reportedRows } from './bare-express.ts';

const RATES = [100];
const NAME = 'minimal service: two INSERTs, a Redis list, raw got';

const TABLES = [
  'CREATE TABLE minimal_events (id text PRIMARY KEY, data text NOT NULL)',
  'CREATE TABLE minimal_deliveries (id text PRIMARY KEY, http_status_code integer NOT NULL)',
];

/**
 * Measures the minimum cost of an event that is stored before the response, queued, and stored again after the
 * delivery: a lower bound at low rates for services with the same libraries.
 */
export async function minimal(bench: Bench, reporter: Program): Promise<Row[]> {
  const world = await bench.openWorld('redis');
  const accepting = startProgram('minimal');
  const delivering = startProgram('minimal');
  try {
    for (const table of TABLES) await world.database.pool.query(table);
    const settings: MinimalSettings = {
      databaseUrl: world.databaseUrl,
      redisUrl: world.queueUrl,
      urls: createEndpointUrls(bench, 'minimal'),
      event: exampleEvent('job.run.errored', EXAMPLE_JOB),
      hmacSecret: createHmacSecret(),
    };
    await delivering.call('deliver', settings);
    const port = await accepting.call<number>('accept', settings);
    const { postgres, redis } = world;
    // The processes have the names of Runhook's services with the same task.
    const read = () =>
      readCpu({
        management: [accepting.pid],
        dispatcher: [delivering.pid],
        redis: redis === null ? [] : [redis.pid],
        postgres: [postgres.pid],
      });
    const of = { name: NAME, url: `http://127.0.0.1:${port}`, rates: RATES, read };
    return (await reportedRows(bench, reporter, of)).rows;
  } finally {
    await accepting.stop();
    await delivering.stop();
    await world.close();
  }
}
