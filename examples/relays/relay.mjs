// A relay that needs only Node (22 or newer): receives Runhook's deliveries, verifies them, and posts each to a chat or a
// pager in the format of that target.
//
//   TARGET=slack TARGET_URL=https://hooks.slack.com/services/… HMAC_SECRET=whsec_… PORT=3004 node relay.mjs
//
// It requires a webhook whose client_url is the address of the relay. TARGET is slack, teams, discord or pagerduty;
// pagerduty needs the ROUTING_KEY of its integration, and a webhook for errored and completed runs. Set SIGNATURE_HEADER
// if the webhook names another header. The relay responds with 2xx only if the target did, so that Runhook retries events
// that the target rejected.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { TARGET, TARGET_URL, HMAC_SECRET, ROUTING_KEY, HOST = '127.0.0.1', PORT = '3004' } = process.env;
const SIGNATURE_HEADER = (process.env.SIGNATURE_HEADER ?? 'authorization').toLowerCase();
const BODY_BYTES_MAX = 1_000_000;
/** Runhook waits for ten seconds. */
const TARGET_TIMEOUT_MS = 8_000;
const EVENTS_CACHED_MAX = 10_000;

/** The message for each target; null for an event that the target does not need. */
const FORMATS = {
  slack: (event) => ({ text: formatSentence(event).replace(/[&<>]/g, (c) => SLACK_ESCAPES[c]) }),
  // A connector and a workflow of Power Automate accept the same card.
  teams: (event) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [{ type: 'TextBlock', text: formatSentence(event), wrap: true }],
        },
      },
    ],
  }),
  // Disables mentions, so that a job's name cannot notify anyone.
  discord: (event) => ({
    content: firstCharacters(formatSentence(event), 2_000),
    allowed_mentions: { parse: [] },
  }),
  // A failed run opens the incident of its job, and the next successful run resolves it.
  pagerduty: (event) => {
    const { jobId, jobName, runStatus } = event.data;
    const common = { routing_key: ROUTING_KEY, dedup_key: `runhook-${event.accountId}-${jobId}` };
    if (event.eventType === 'job.run.errored')
      return {
        ...common,
        event_action: 'trigger',
        payload: {
          summary: firstCharacters(formatSentence(event), 1_024),
          source: jobName,
          severity: 'error',
          timestamp: event.timestamp,
          custom_details: event.data,
        },
      };
    return runStatus === 'Success' ? { ...common, event_action: 'resolve' } : null;
  },
};
const SLACK_ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

if (!HMAC_SECRET) throw new Error('HMAC_SECRET is not set');
if (!TARGET_URL) throw new Error('TARGET_URL is not set');
if (!Object.hasOwn(FORMATS, TARGET ?? ''))
  throw new Error(`TARGET must be one of ${Object.keys(FORMATS).join(', ')}`);
if (TARGET === 'pagerduty' && !ROUTING_KEY) throw new Error('ROUTING_KEY is not set');

function formatSentence({ eventType, data }) {
  const { jobName, runId, environmentName, runStatus, runStatusMessage } = data;
  const ended = runStatus === 'Success' ? 'succeeded' : 'failed';
  const what = eventType === 'job.run.started' ? 'started' : ended;
  const why = runStatusMessage === 'None' ? '' : ` ${runStatusMessage}`;
  return `${jobName} ${what}: run ${runId} in ${environmentName}.${why}`;
}

/** Cuts by code points, because a cut by UTF-16 units may leave half of an emoji, which targets reject. */
function firstCharacters(text, count) {
  return [...text].slice(0, count).join('');
}

function isGenuine(body, signature) {
  const expected = Buffer.from(createHmac('sha256', HMAC_SECRET).update(body).digest('hex'));
  const received = Buffer.from(signature ?? '');
  return received.length === expected.length && timingSafeEqual(received, expected);
}

/** Results of events by eventId: an event that arrives twice is sent once, unless the target rejected it. */
const sent = new Map();

async function sendOnce(event) {
  const before = sent.get(event.eventId);
  if (before) return await before;
  const sending = send(event);
  sent.set(event.eventId, sending);
  if (sent.size > EVENTS_CACHED_MAX) sent.delete(sent.keys().next().value);
  const isAccepted = await sending;
  if (!isAccepted) sent.delete(event.eventId);
  return isAccepted;
}

/** Returns whether the target accepted the event. */
async function send(event) {
  const message = FORMATS[TARGET](event);
  if (message === null) return true;
  try {
    const response = await fetch(TARGET_URL, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message),
      signal: AbortSignal.timeout(TARGET_TIMEOUT_MS),
    });
    if (!response.ok)
      print({ eventId: event.eventId, target: response.status, says: (await response.text()).slice(0, 500) });
    return response.ok;
  } catch (error) {
    print({ eventId: event.eventId, target: String(error.cause ?? error) });
    return false;
  }
}

async function handleRequest(request) {
  if (request.method !== 'POST') return 405;
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return 413;
    chunks.push(chunk);
  }
  // The signature covers the exact bytes; the body must not be used before it is verified.
  const body = Buffer.concat(chunks);
  if (!isGenuine(body, request.headers[SIGNATURE_HEADER])) return 401;
  return (await sendOnce(JSON.parse(body))) ? 204 : 502;
}

const server = createServer((request, response) => {
  handleRequest(request).then(
    (status) => response.writeHead(status).end(),
    () => response.destroy(),
  );
});

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

server.listen(Number(PORT), HOST, () => print({ listening: `http://${HOST}:${server.address().port}/` }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close());
