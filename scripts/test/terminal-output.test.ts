import { expect, test } from '@jest/globals';
import { deliveryLine, parseReceiverLine, type ReceivedDelivery } from '../src/deliveries.ts';
import type { DevJson } from '../src/home.ts';
import type { Terminal } from '../src/terminal.ts';
import { commands, summary } from '../src/terminal.ts';

const plain = (text: string) => text;
const style: Terminal['style'] = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain };

const delivery: ReceivedDelivery = {
  time: '2026-01-31T12:00:00.000Z',
  endpoint: 'http://127.0.0.1:3002/webhooks',
  verified: true,
  status: 503,
  attempt: 2,
  eventId: 'wev_1',
  eventType: 'job.run.started',
  webhookId: 'wsu_1',
  jobName: 'Nightly build',
  runId: '7',
  runStatus: 'Running',
};

const dev: DevJson = {
  baseUrl: 'http://127.0.0.1:3000',
  account: { id: 1, identifier: 'act_1' },
  user: { id: 2, email: 'demo@runhook.local', password: 'a password', apiKey: 'rhu_key' },
  serviceToken: 'rhs_admin',
  runnerToken: 'rhs_runner',
  jobs: [{ id: 1, name: 'Nightly build' }],
  subscription: { id: 'wsu_1', hmacSecret: 'whsec_secret' },
  receiverUrl: 'http://127.0.0.1:3002/webhooks',
  operationsUrl: 'http://127.0.0.1:3004',
  dispatcherUrl: 'http://127.0.0.1:3001',
  databaseUrl: 'postgres://runhook:hidden@127.0.0.1:54329/runhook',
  managementDatabaseUrl: 'postgres://runhook_management:hidden@127.0.0.1:54329/runhook',
  queueUrl: 'redis://127.0.0.1:63790',
  processes: { management: 10, dispatcher: 11, receiver: 12, postgres: 13, redis: null },
};

test('the line of npm start for a delivery has event, endpoint, attempt, status and the result of the verification', () => {
  expect(deliveryLine(delivery, style).slice('12:00:00  '.length)).toBe(
    'job.run.started    http://127.0.0.1:3002/webhooks  attempt 2  503 rejected  signature verified  Nightly build',
  );
});

test('the line of npm start for a delivery that could not be verified says so, and shows nothing of its body', () => {
  const unknown = {
    eventId: null,
    eventType: null,
    webhookId: null,
    jobName: null,
    runId: null,
    runStatus: null,
  };
  expect(deliveryLine({ ...delivery, ...unknown, verified: false, status: 401 }, style)).toMatch(
    /unknown event +http:\S+ {2}attempt 2 {2}401 rejected +signature NOT verified$/,
  );
});

test('npm start parses the lines of its receiver, and ignores other output', () => {
  expect(parseReceiverLine(JSON.stringify(delivery))).toEqual({ delivery });
  expect(parseReceiverLine('{"listening":"http://127.0.0.1:1/webhooks"}')).toEqual({
    listening: 'http://127.0.0.1:1/webhooks',
  });
  for (const line of ['', 'npm warn', '{}', 'null', '{"attempt"']) expect(parseReceiverLine(line)).toBeNull();
});

test('the summary of npm start lists the addresses and credentials, and no database password', () => {
  const text = summary(dev, style).join('\n');
  for (const value of [
    dev.baseUrl,
    dev.receiverUrl,
    dev.user.email,
    dev.user.password,
    dev.serviceToken,
    dev.runnerToken,
  ]) {
    expect(text).toContain(value);
  }
  expect(text).not.toContain('hidden');
});

test('the summary of npm start begins with the address of the console and the user who can sign in', () => {
  expect(summary(dev, style).slice(0, 3)).toEqual([
    '  console      http://127.0.0.1:3000/  sign in as this user, with this password:',
    '    user       demo@runhook.local',
    '    password   a password',
  ]);
});

test('each of the three example commands of npm start is one line of curl', () => {
  const texts = commands(dev).map(({ command }) => command);
  expect(texts).toHaveLength(3);
  for (const text of texts) expect(text).toMatch(/^curl -sS -H 'Authorization: Token rhs_admin' [^\n]+$/);
});
