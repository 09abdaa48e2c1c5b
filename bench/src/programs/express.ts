// A bare Express server that parses the same body and discards it: an upper bound for any service that is built with
// Express. If endpoints are configured, it immediately sends a delivery for each call with got.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { deliveryHeaders, type JobRunEvent, renderPayload } from '@runhook/contract';
import express, { type Request } from 'express';
import got from 'got';
import { serve } from './program.ts';

export interface ExpressSettings {
  /** Endpoints, used in turn; empty if nothing is to be sent. */
  urls: string[];
  event: JobRunEvent;
  hmacSecret: string;
}

const SOCKETS_MAX = 64;

serve({
  listen({ urls, event, hmacSecret }: ExpressSettings): Promise<number> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
    const client = got.extend({
      agent: { http: agent },
      retry: { limit: 0 },
      throwHttpErrors: false,
      timeout: { request: 10_000 },
    });
    let sent = 0;

    /** Uses the name of the call in the ledger as event id: account, run and type of the event. */
    async function send(request: Request): Promise<void> {
      const { account_id: accountId, run_id: isEnded } = request.params;
      const eventType = isEnded === undefined ? 'job.run.started' : 'job.run.errored';
      const eventId = `${accountId} ${isEnded ?? request.body.run_id} ${eventType}`;
      const body = renderPayload(event, { id: 'wsu_2x4y6z8A0C2E4G6I8K0M2O4Q6S8', name: 'Benchmark' });
      const headers = deliveryHeaders({ body, eventId, hmacSecrets: [hmacSecret], sentAt: new Date() });
      await client.post(urls[sent++ % urls.length] as string, { headers, body });
    }

    const app = express();
    app.use(express.json());
    const runs = '/api/v2/accounts/:account_id/runs';
    for (const path of [runs, `${runs}/:run_id/finish`]) {
      app.post(path, (request, response) => {
        response.status(path === runs ? 201 : 200).json({ status: { code: 200 }, data: request.body });
        if (urls.length > 0) void send(request).catch(() => undefined);
      });
    }
    return new Promise((resolve) => {
      const server = app.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  },
});
