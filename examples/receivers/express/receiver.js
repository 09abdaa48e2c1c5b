// A receiver of job-run events: verifies each delivery and prints it as a line of JSON.
//
//   HMAC_SECRET=whsec_… PORT=3002 node examples/receivers/express/receiver.js
//
// It requires a subscription whose client_url is http://127.0.0.1:3002/webhooks. HMAC_SECRET is the hmac_secret in the
// response to the creation of the subscription.
import express from 'express';
import { createAttemptCounter } from './attempts.js';
import { isGenuine } from './signature.js';

// The webhook's signature header, in lower case, and the path of its client_url.
const SIGNATURE_HEADER = 'authorization';
const PATH = '/webhooks';
const { HMAC_SECRET, HOST = '127.0.0.1', PORT = '3002', REJECT_JOB_ID, REJECT_ATTEMPTS = '2' } = process.env;
if (!HMAC_SECRET) throw new Error('HMAC_SECRET is not set');

const countAttempt = createAttemptCounter();
const app = express();
app.disable('x-powered-by');

// The signature covers the exact bytes, so the body is read unparsed; no JSON parser may precede this.
app.post(PATH, express.raw({ type: () => true, limit: '1mb' }), (request, response) => {
  const body = request.body ?? Buffer.alloc(0);
  const verified = isGenuine(body, request.headers[SIGNATURE_HEADER], HMAC_SECRET);
  // The body must not be used before it is verified.
  const event = verified ? JSON.parse(body) : null;
  const attempt = countAttempt(request.headers['webhook-id'], event?.webhooksID);
  const status = selectStatus(event, attempt);
  // Respond first and process the event afterwards: an attempt without a response fails after ten seconds.
  response.sendStatus(status);
  print({
    time: new Date().toISOString(),
    endpoint: `http://${HOST}:${server.address().port}${request.path}`,
    verified,
    status,
    attempt,
    eventId: event?.eventId ?? null,
    eventType: event?.eventType ?? null,
    webhookId: event?.webhooksID ?? null,
    jobName: event?.data.jobName ?? null,
    runId: event?.data.runId ?? null,
    runStatus: event?.data.runStatus ?? null,
  });
});

let rejectedRunId;

/** A real receiver would respond with 401 or 2xx. This one can also fail on request, to demonstrate retries. */
function selectStatus(event, attempt) {
  if (event === null) return 401;
  if (event.eventType !== 'job.run.completed' || event.data.jobId !== REJECT_JOB_ID) return 204;
  // Only the first run of the job.
  rejectedRunId ??= event.data.runId;
  const isRejected = event.data.runId === rejectedRunId;
  return isRejected && attempt <= Number(REJECT_ATTEMPTS) ? 503 : 204;
}

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const server = app.listen(Number(PORT), HOST, (error) => {
  if (error) throw error;
  print({ listening: `http://${HOST}:${server.address().port}${PATH}` });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close());
