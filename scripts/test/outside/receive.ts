// A user's project: receives with each of the handlers, from installed packages only. packages.test.ts compiles and runs it. Its
// argument is packages/contract/golden/deliveries.json.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type DeduplicationStore,
  deduplicate,
  expressHandler,
  fastifyHandler,
  InvalidDeliveryError,
  type JobRunEvent,
  verify,
  webHandler,
} from '@runhook/receiver';
import express from 'express';
import Fastify from 'fastify';

interface Delivery {
  name: string;
  body: string;
  headers: Record<string, string>;
  secrets: string[];
  nowMs: number;
  genuine: { authorization: boolean; standardWebhooks: boolean };
}

const { deliveries } = JSON.parse(readFileSync(process.argv[2] as string, 'utf8')) as {
  deliveries: Delivery[];
};
const [delivery] = deliveries as [Delivery];
const options = { secrets: delivery.secrets, now: () => delivery.nowMs };

const seen: string[] = [];
/** The type of an event determines which time it has. */
function onEvent(event: JobRunEvent): void {
  switch (event.eventType) {
    case 'job.run.completed':
      seen.push(event.data.runFinishedAt);
      break;
    case 'job.run.errored':
      seen.push(event.data.runErroredAt);
      break;
    default:
      seen.push(event.data.runStartedAt);
  }
}

const states = new Map<string, 'in_progress' | 'done'>();
const store: DeduplicationStore = {
  async claim(eventId) {
    const state = states.get(eventId);
    if (state === undefined) states.set(eventId, 'in_progress');
    return state ?? 'claimed';
  },
  finish: async (eventId) => void states.set(eventId, 'done'),
  release: async (eventId) => void states.delete(eventId),
};

const app = express();
app.post('/late', express.json(), expressHandler(options, onEvent));
app.post('/raw', express.raw({ type: '*/*' }), expressHandler(options, onEvent));
app.post('/', expressHandler(options, deduplicate(onEvent, { store })));
app.use(((error, _request, response, _next) => {
  response.status(500).send(String(error.message).slice(0, 20));
}) satisfies express.ErrorRequestHandler);
const onExpress = app.listen(0);

const fastify = Fastify();
fastify.register(fastifyHandler('/', options, onEvent));
fastify.post('/parsed', async (request) => ({ type: (request.body as { eventType: string }).eventType }));
await fastify.listen({ port: 0 });

const plain = createServer(expressHandler({ ...options, scheme: 'authorization' }, onEvent)).listen(0);
const web = webHandler(options, onEvent);

async function post(server: Server, path = '/', body = delivery.body): Promise<string> {
  if (!server.listening) await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  const headers = { ...delivery.headers, 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', body, headers });
  return `${response.status} ${await response.text()}`.trim();
}

const forged = `${delivery.body}\n`;
const responses = {
  express: [await post(onExpress), await post(onExpress), await post(onExpress, '/', forged)],
  raw: [await post(onExpress, '/raw')],
  late: [await post(onExpress, '/late')],
  fastify: [await post(fastify.server), await post(fastify.server, '/', forged)],
  parsed: [await post(fastify.server, '/parsed')],
  plain: [await post(plain), await post(plain, '/', forged)],
  web: [
    (await web(new Request('http://a', { method: 'POST', body: delivery.body, headers: delivery.headers })))
      .status,
  ],
};
const wrong = deliveries.filter(({ body, headers, secrets, nowMs, genuine }) =>
  (['authorization', 'standard-webhooks'] as const).some((scheme) => {
    try {
      verify(body, headers, { secrets, scheme, now: () => nowMs });
      return !genuine[scheme === 'authorization' ? 'authorization' : 'standardWebhooks'];
    } catch (error) {
      const isForged = error instanceof InvalidDeliveryError && error.code !== 'invalid_event';
      return isForged === genuine[scheme === 'authorization' ? 'authorization' : 'standardWebhooks'];
    }
  }),
);
process.stdout.write(JSON.stringify({ responses, seen: seen.length, wrong: wrong.map(({ name }) => name) }));
process.exit(0);
