// A receiver that posts the result of each completed run to a chat: it reads the run with its steps, and `run_results.json`.
//
//   HMAC_SECRET=whsec_… API_URL=https://runhook.example.com API_KEY=… CHAT_URL=https://hooks.slack.com/services/… \
//     PORT=3004 node examples/receivers/express/chat.js
//
// It requires a subscription to job.run.completed whose client_url is http://127.0.0.1:3004/webhooks, an API key that may read
// runs, and an incoming webhook of a chat, which accepts {"text": "…"}, as those of Slack and many others.
import express from 'express';
import { isGenuine } from './signature.js';

const { HMAC_SECRET, API_URL, API_KEY, CHAT_URL, HOST = '127.0.0.1', PORT = '3004' } = process.env;
for (const [name, value] of Object.entries({ HMAC_SECRET, API_URL, API_KEY, CHAT_URL }))
  if (!value) throw new Error(`${name} is not set`);

const PATH = '/webhooks';
/** The three requests take nine seconds at most, because an attempt without a response fails after ten. */
const TIMEOUT_MS = 3_000;
const LOG_LINES = 10;

/** Events that were posted; a receiver with several processes would store them. */
const posted = new Set();
const app = express();
app.disable('x-powered-by');

app.post(PATH, express.raw({ type: () => true, limit: '1mb' }), async (request, response) => {
  const body = request.body ?? Buffer.alloc(0);
  if (!isGenuine(body, request.headers.authorization, HMAC_SECRET)) return response.sendStatus(401);
  const event = JSON.parse(body);
  if (event.eventType !== 'job.run.completed' || posted.has(event.eventId)) return response.sendStatus(204);
  try {
    await postResult(event);
    posted.add(event.eventId);
    response.sendStatus(204);
  } catch (error) {
    // The delivery is attempted again, so a failure of the API or the chat loses no message.
    process.stderr.write(`${event.eventId}: ${error.message}\n`);
    response.sendStatus(503);
  }
});

async function postResult({ accountId, data }) {
  const runUrl = `${API_URL}/api/v2/accounts/${accountId}/runs/${data.runId}`;
  const run = (await getJson(`${runUrl}/?include_related=run_steps`)).data;
  // A run without dbt commands has no such file.
  const results =
    (await getJson(`${runUrl}/artifacts/run_results.json`, { mayBeMissing: true }))?.results ?? [];
  const lines = [
    `<${run.href}|${run.status_humanized}: run ${run.id} of ${data.jobName}> in ${data.environmentName}, ${run.duration_humanized}`,
    ...run.run_steps.flatMap(stepLines),
    ...results.filter(({ status }) => ['error', 'fail'].includes(status)).map(resultLine),
  ];
  await send(CHAT_URL, { method: 'POST', body: JSON.stringify({ text: lines.join('\n') }) });
}

/** A failed step is shown with the end of its log. */
function stepLines({ name, status_humanized: status, duration_humanized: duration, logs }) {
  const line = `${status === 'Success' ? '✅' : '❌'} ${name} (${status}, ${duration})`;
  return status === 'Success' || !logs ? [line] : [line, ...logs.trimEnd().split('\n').slice(-LOG_LINES)];
}

function resultLine({ unique_id: id, status, message }) {
  return `• ${id}: ${status}: ${message}`;
}

async function getJson(url, { mayBeMissing = false } = {}) {
  const response = await send(
    url,
    { headers: { authorization: `Token ${API_KEY}` } },
    mayBeMissing ? 404 : null,
  );
  return response.status === 404 ? null : JSON.parse(response.text);
}

/** Throws for a status that is neither 2xx nor the accepted one. */
async function send(url, options, acceptedStatus = null) {
  const headers = { 'content-type': 'application/json', ...options.headers };
  const response = await fetch(url, { ...options, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  if (!response.ok && response.status !== acceptedStatus) throw new Error(`${url}: ${response.status}`);
  return { status: response.status, text };
}

const server = app.listen(Number(PORT), HOST, (error) => {
  if (error) throw error;
  process.stdout.write(
    `${JSON.stringify({ listening: `http://${HOST}:${server.address().port}${PATH}` })}\n`,
  );
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close());
