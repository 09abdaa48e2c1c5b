// A minimal service of the same form, as a lower bound for costs: it stores each event before it responds, passes it
// through a queue, and stores the delivery. It has no authentication, lookups, retries, claims or deduplication. One
// process accepts, another delivers.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { deliveryHeaders, type JobRunEvent, renderPayload } from '@runhook/contract';
import { openDatabase, runStatement } from '@runhook/database';
import express from 'express';
import got from 'got';
import { Redis } from 'ioredis';
import { serve } from './program.ts';

export interface MinimalSettings {
  databaseUrl: string;
  redisUrl: string;
  /** URLs of endpoints, used in turn. */
  urls: string[];
  event: JobRunEvent;
  hmacSecret: string;
}

const INSERT_EVENT = 'INSERT INTO minimal_events (id, data) VALUES ($1, $2)';
const INSERT_DELIVERY = 'INSERT INTO minimal_deliveries (id, http_status_code) VALUES ($1, $2)';
const QUEUE = 'minimal';
const IN_FLIGHT_MAX = 64;

serve({
  accept({ databaseUrl, redisUrl }: MinimalSettings): Promise<number> {
    const database = openDatabase({ url: databaseUrl });
    const redis = new Redis(redisUrl);
    const app = express();
    app.use(express.json());
    const runs = '/api/v2/accounts/:account_id/runs';
    for (const path of [runs, `${runs}/:run_id/finish`]) {
      app.post(path, async (request, response) => {
        const { account_id: accountId, run_id: ended } = request.params as Record<string, string | undefined>;
        const eventType = ended === undefined ? 'job.run.started' : 'job.run.errored';
        const eventId = `${accountId} ${ended ?? request.body.run_id} ${eventType}`;
        const data = JSON.stringify(request.body);
        await runStatement(database.pool, INSERT_EVENT, [eventId, data], 'keep-event');
        response.status(path === runs ? 201 : 200).json({ status: { code: 200 }, data: request.body });
        await redis.lpush(QUEUE, eventId);
      });
    }
    return new Promise((resolve) => {
      const server = app.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  },

  deliver({ databaseUrl, redisUrl, urls, event, hmacSecret }: MinimalSettings): void {
    const database = openDatabase({ url: databaseUrl });
    const redis = new Redis(redisUrl);
    const client = got.extend({
      agent: { http: new http.Agent({ keepAlive: true, maxSockets: IN_FLIGHT_MAX }) },
      retry: { limit: 0 },
      throwHttpErrors: false,
      timeout: { request: 10_000 },
    });
    let sent = 0;

    async function send(eventId: string): Promise<void> {
      const body = renderPayload(event, { id: 'wsu_2x4y6z8A0C2E4G6I8K0M2O4Q6S8', name: 'Benchmark' });
      const headers = deliveryHeaders({ body, eventId, hmacSecrets: [hmacSecret], sentAt: new Date() });
      const { statusCode } = await client.post(urls[sent++ % urls.length] as string, { headers, body });
      await runStatement(database.pool, INSERT_DELIVERY, [eventId, statusCode], 'keep-delivery');
    }

    async function takeJobs(): Promise<never> {
      const inFlight = new Set<Promise<void>>();
      while (true) {
        const [, eventId] = (await redis.brpop(QUEUE, 0)) as [string, string];
        const sending = send(eventId).finally(() => inFlight.delete(sending));
        inFlight.add(sending);
        if (inFlight.size >= IN_FLIGHT_MAX) await Promise.race(inFlight);
      }
    }
    // A failed delivery is missing in the ledger, which ends the benchmark with this message.
    void takeJobs().catch((error) => process.stderr.write(`minimal: ${error}\n`));
  },
});
