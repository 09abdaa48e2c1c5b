import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

const RECEIVERS = fileURLToPath(new URL('../examples/receivers', import.meta.url));
const SECRET = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw==';
// Not what JSON.stringify would write, and not ASCII: the bytes count.
const BODY =
  '{ "eventId":"wev_1","eventType" : "job.run.started","webhooksID":"wsu_1","data":{"jobName":"Täglich ✓"}}';

const sign = (body: string, secret = SECRET) => createHmac('sha256', secret).update(body).digest('hex');
const python = spawnSync('python3', ['--version']).status === 0;
if (!python) process.stderr.write('the Python receiver is not tested: python3 is not on the path\n');

const receivers: [string, string, string[]][] = [
  ['express', process.execPath, ['express/receiver.js']],
  ...(python ? [['python', 'python3', ['python/receiver.py']] as [string, string, string[]]] : []),
];

describe.each(receivers)('the %s receiver', (_, file, args) => {
  let child: ChildProcess;
  let url: string;
  let lines: AsyncIterator<string>;

  beforeAll(async () => {
    const env = { ...process.env, NODE_OPTIONS: '', HMAC_SECRET: SECRET, PORT: '0' };
    child = spawn(file, args, { cwd: RECEIVERS, env, stdio: ['ignore', 'pipe', 'inherit'] });
    lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    url = (JSON.parse((await lines.next()).value) as { listening: string }).listening;
  });

  afterAll(async () => {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });

  async function deliver(body: string, authorization: string | null) {
    const headers = { 'webhook-id': 'wev_1', ...(authorization === null ? {} : { authorization }) };
    const { status } = await fetch(url, { method: 'POST', body, headers });
    return { status, line: JSON.parse((await lines.next()).value) as Record<string, unknown> };
  }

  test('accepts a delivery that carries the signature of its exact bytes', async () => {
    const { status, line } = await deliver(BODY, sign(BODY));
    expect(status).toBe(204);
    expect(line).toMatchObject({
      verified: true,
      status: 204,
      eventId: 'wev_1',
      eventType: 'job.run.started',
    });
  });

  test.each([
    ['a changed body', `${BODY} `, sign(BODY)],
    ['another secret', BODY, sign(BODY, 'whsec_other')],
    ['no signature', BODY, null],
    ['an empty signature', BODY, ''],
    ['a signature in capitals', BODY, sign(BODY).toUpperCase()],
    ['a signature cut short', BODY, sign(BODY).slice(0, 63)],
    ['a signature that is too long', BODY, `${sign(BODY)}0`],
    ['an empty body', '', sign(BODY)],
    ['what is no JSON', 'not JSON', sign('something else')],
  ])('refuses %s and says nothing of what it held', async (_what, body, authorization) => {
    const { status, line } = await deliver(body, authorization);
    expect(status).toBe(401);
    expect(line).toMatchObject({ verified: false, status: 401, eventId: null, eventType: null });
  });
});
