// Raw got: what one process can send when it does nothing else. Same bodies, same signatures, same receivers.
import http from 'node:http';
import { deliveryHeaders, type JobRunEvent, renderPayload } from '@runhook/contract';
import got, { type Got } from 'got';
import { serve } from './program.ts';

/** `got` is what a caller would write first; the others are measured beside it for the record. */
export type RawClient = 'got' | 'got.stream' | 'node:http';

export interface RawRun {
  client: RawClient;
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

type Send = (url: URL, headers: Record<string, string>, body: string) => Promise<number>;

const TIMEOUT_MS = 10_000;

serve({
  async run(run: RawRun): Promise<RawResult> {
    const agent = new http.Agent({
      keepAlive: true,
      maxSockets: run.concurrency,
      maxFreeSockets: run.concurrency,
    });
    const send = senderOf(run.client, agent);
    const urls = run.urls.map((url) => new URL(url));
    const endMs = performance.now() + run.durationMs;
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    let requests = 0;

    async function sendInTurn(): Promise<void> {
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
        const status = await send(urls[index % urls.length] as URL, headers, body);
        if (status !== 204) throw new Error(`the receiver answered ${status}`);
      }
    }

    await Promise.all(Array.from({ length: run.concurrency }, sendInTurn));
    const seconds = (performance.now() - startMs) / 1_000;
    const { user, system } = process.cpuUsage(cpuBefore);
    agent.destroy();
    return { requests, ratePerSecond: requests / seconds, cpuMicrosPerRequest: (user + system) / requests };
  },
});

function senderOf(client: RawClient, agent: http.Agent): Send {
  if (client === 'node:http') return (url, headers, body) => sendByNode(agent, url, headers, body);
  const options = {
    agent: { http: agent },
    retry: { limit: 0 },
    throwHttpErrors: false,
    followRedirect: false,
    decompress: false,
  } as const;
  const instance = got.extend({ ...options, timeout: { request: TIMEOUT_MS } });
  if (client === 'got.stream') return (url, headers, body) => sendByStream(instance, url, headers, body);
  return async (url, headers, body) => (await instance.post(url, { headers, body })).statusCode;
}

function sendByStream(
  instance: Got,
  url: URL,
  headers: Record<string, string>,
  body: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0;
    instance.stream
      .post(url, { headers, body })
      .on('response', (response: http.IncomingMessage) => {
        status = response.statusCode ?? 0;
      })
      .on('error', reject)
      .on('end', () => resolve(status))
      .resume();
  });
}

function sendByNode(
  agent: http.Agent,
  url: URL,
  headers: Record<string, string>,
  body: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      response.on('end', () => resolve(response.statusCode ?? 0)).resume();
    });
    request.on('error', reject).end(body);
  });
}
