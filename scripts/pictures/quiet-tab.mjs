// npm run pictures -- quiet-tab: counts the requests and bytes of an open page of the console while nothing happens.
import { setTimeout as wait } from 'node:timers/promises';
import { readArguments, readNumber, usage } from '../shared/arguments.mjs';
import { step } from '../shared/command.mjs';
import { signIn, withConsoleWorld } from './console-world.mjs';

const BYTES_MAX_OF_TEN_MINUTES = 20_000;
const USAGE = usage({
  call: 'npm run pictures -- quiet-tab [--minutes <n>]',
  purpose: 'counts the requests and bytes of an open page of the console while nothing happens',
  duration: '10 minutes; Ctrl-C prints the counts so far',
  prerequisites: 'chromium',
  details: '--minutes  duration of the measurement; 10 when omitted',
});

const { values } = readArguments(USAGE, { options: { minutes: { type: 'string', default: '10' } } });
const minutes = readNumber('--minutes', values.minutes);

await withConsoleWorld(
  async ({ management, demo, testing, chromium, executablePath, chromiumArgs, opened }) => {
    const [name, value] = (await signIn(management, demo.person)).split('=');
    const browser = await chromium.launch({ executablePath, args: chromiumArgs });
    opened(() => browser.close());
    const list = `/accounts/${demo.account.id}/settings/webhooks`;
    const counters = {};
    for (const path of [list, `${list}/${demo.webhookIds[0]}`]) {
      const context = await browser.newContext();
      await context.addCookies([{ name, value, url: management, httpOnly: true, sameSite: 'Strict' }]);
      const page = await context.newPage();
      const counter = await countTraffic(context, page);
      await page.goto(management + path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await testing.eventually(async () => {
        if (!counter.hasStream()) throw new Error('the page has opened no event stream');
      });
      counters[path] = { counter, page };
    }
    // Waits for the requests that the opening of the event stream causes.
    await wait(5_000);
    const loaded = Object.fromEntries(
      Object.entries(counters).map(([path, { counter }]) => [path, counter.now()]),
    );
    const quietMinutes = await step(`measuring an idle page for ${minutes} minutes`, () =>
      waitOrStop(minutes),
    );
    for (const [path, { counter }] of Object.entries(counters)) {
      const { requests, bytes } = counter.now();
      const quiet = { requests: requests - loaded[path].requests, bytes: bytes - loaded[path].bytes };
      const isGood = quiet.bytes < (BYTES_MAX_OF_TEN_MINUTES * quietMinutes) / 10;
      process.stdout.write(
        `${isGood ? '✓' : '✗'} ${path.replace(/wsu_\w+/, '…')}: ${quiet.requests} requests, ${quiet.bytes} bytes in ${quietMinutes} minutes ` +
          `(${loaded[path].requests} requests, ${loaded[path].bytes} bytes to load it)\n`,
      );
      if (!isGood) process.exitCode = 1;
    }
  },
);

/** Resolves with the minutes that have passed: fewer than `minutes` if the command was stopped, which then prints its counts. */
async function waitOrStop(minutes) {
  const startedAt = performance.now();
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => stopping.abort());
  await wait(minutes * 60_000, undefined, { signal: stopping.signal }).catch(() => {
    process.exitCode = 130;
  });
  return stopping.signal.aborted ? Number(((performance.now() - startedAt) / 60_000).toFixed(1)) : minutes;
}

/** Counts the bytes on the wire with the headers, as Chromium reports them. */
async function countTraffic(context, page) {
  const session = await context.newCDPSession(page);
  let requests = 0;
  let bytes = 0;
  const streams = new Set();
  // Maps each response to the bytes counted so far: the event at its end reports the total again, with the headers.
  const arrived = new Map();
  session.on('Network.requestWillBeSent', ({ request }) => {
    requests += 1;
    const head = Object.entries(request.headers).map(([field, text]) => `${field}: ${text}\r\n`);
    bytes += `${request.method} ${request.url} HTTP/1.1\r\n${head.join('')}\r\n`.length;
  });
  session.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.mimeType === 'text/event-stream') streams.add(requestId);
    add(requestId, response.encodedDataLength);
  });
  session.on('Network.dataReceived', ({ requestId, dataLength, encodedDataLength }) =>
    add(requestId, encodedDataLength || (streams.has(requestId) ? dataLength : 0)),
  );
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
    add(requestId, Math.max(0, encodedDataLength - (arrived.get(requestId) ?? 0))),
  );
  const add = (requestId, more) => {
    arrived.set(requestId, (arrived.get(requestId) ?? 0) + more);
    bytes += more;
  };
  await session.send('Network.enable');
  return { now: () => ({ requests, bytes }), hasStream: () => streams.size > 0 };
}
