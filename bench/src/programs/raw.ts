// Raw got: measures what one process can send if it does nothing else, with the same bodies, signatures and receivers.
import http from 'node:http';
import { deliveryHeaders, type JobRunEvent, renderPayload } from '@runhook/contract';
import got from 'got';
import { serve } from './program.ts';

export interface RawRun {
  urls: string[];
  events: JobRunEvent[];
  hmacSecret: string;
  durationMs: number;
  concurrency: number;
}

export interface RawResult {
  requests: number;
  ratePerSecond: number;
  cpuMicrosPerRequest: number;
}

const TIMEOUT_MS = 10_000;

serve({
  async run(run: RawRun): Promise<RawResult> {
    const agent = new http.Agent({
      keepAlive: true,
      maxSockets: run.concurrency,
      maxFreeSockets: run.concurrency,
    });
    const client = got.extend({
      agent: { http: agent },
      retry: { limit: 0 },
      throwHttpErrors: false,
      followRedirect: false,
      decompress: false,
      timeout: { request: TIMEOUT_MS },
    });
    const urls = run.urls.map((url) => new URL(url));
    const endMs = performance.now() + run.durationMs;
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    let requests = 0;

    async function sendSequentially(): Promise<void> {
      while (performance.now() < endMs) {
        const index = requests++;
        const event = run.events[index % run.events.length] as JobRunEvent;
        const body = renderPayload(event, { id: 'wsu_2x4y6z8A0C2E4G6I8K0M2O4Q6S8', name: 'Benchmark' });
        const headers = deliveryHeaders({
          body,
          eventId: event.eventId,
          hmacSecrets: [run.hmacSecret],
          sentAt: new Date(),
        });
        const { statusCode } = await client.post(urls[index % urls.length] as URL, { headers, body });
        if (statusCode !== 204) throw new Error(`the receiver returned ${statusCode}`);
      }
    }

    await Promise.all(Array.from({ length: run.concurrency }, sendSequentially));
    const seconds = (performance.now() - startMs) / 1_000;
    const { user, system } = process.cpuUsage(cpuBefore);
    agent.destroy();
    return { requests, ratePerSecond: requests / seconds, cpuMicrosPerRequest: (user + system) / requests };
  },
});
