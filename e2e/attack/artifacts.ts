import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { eventually, queueBackends } from '@runhook/testing';
import { callApi, openSystem, type System } from '../observability/system.ts';
import type { RunningService } from '../services.ts';
import type { Attack } from './attack.ts';

const SCRIPT = '<script>fetch("/api/v3/profile")</script>';

/** Files that browsers would execute in the origin of the console, by path, with the type that the uploader declares. */
const ACTIVE_FILES: Record<string, [declaredType: string, content: string]> = {
  'index.html': ['text/html', `<!doctype html>${SCRIPT}`],
  'graph.svg': ['image/svg+xml', `<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`],
  'page.xhtml': ['application/xhtml+xml', `<html xmlns="http://www.w3.org/1999/xhtml">${SCRIPT}</html>`],
  'report.pdf': ['application/pdf', '%PDF-1.7 /OpenAction /JS (app.alert(1))'],
  'script.js': ['text/javascript', 'fetch("/api/v3/profile")'],
  'sniffed.txt': ['text/html', `<!doctype html>${SCRIPT}`],
  'manifest.json': ['text/html', `{"html": "${SCRIPT.replaceAll('"', "'")}"}`],
  noextension: ['text/html', SCRIPT],
};

const SAFE_TYPES = /^(application\/json|text\/plain; charset=utf-8|application\/octet-stream)$/;

const PATHS = [
  '../x',
  '../../../../../../etc/passwd',
  '..%2f..%2f..%2fetc%2fpasswd',
  '%2e%2e%2f%2e%2e%2fx',
  'a/../../b',
  '%2fetc%2fpasswd',
  '//etc/passwd',
  '..%5c..%5cx',
  'a%00.json',
  'a%0d%0aX-Injected:%201',
  'a%22;filename=%22b.html',
  '%ff%fe',
  'CON',
  '.',
  '%2e',
  'a//b',
  `${'d/'.repeat(200)}x`,
  'x'.repeat(5_000),
];

/** Uploads files that browsers execute, below paths that leave the store, with lengths that are wrong. */
export const artifacts: Attack = {
  name: 'artifacts',
  async run({ log }) {
    const backend = queueBackends().at(-1);
    if (!backend) throw new Error('there is no queue back end');
    const system = await openSystem(backend);
    try {
      const management = await system.start('management');
      const run = await startRun(system, management);
      const world = { system, management, run };
      const results = {
        'files that browsers execute': await uploadActive(world),
        'paths out of the store': await uploadBeyond(world),
        'wrong lengths': await uploadTruncated(world),
        ranges: await requestRanges(world),
      };
      const lines = Object.entries(results).map(([name, found]) => {
        log(`${name}: ${found.length} problems`);
        return `| ${name} | ${found.length === 0 ? 'rejected or harmless' : found.join('; ')} |`;
      });
      return {
        table: ['| attack | result |', '|---|---|', ...lines].join('\n'),
        problems: Object.entries(results).flatMap(([name, found]) =>
          found.map((problem) => `${name}: ${problem}`),
        ),
      };
    } finally {
      await system.close();
    }
  },
};

interface World {
  system: System;
  management: RunningService;
  /** Path of the run, with a slash at its end. */
  run: string;
}

async function startRun(system: System, management: RunningService): Promise<string> {
  const base = `/v2/accounts/${system.account.id}`;
  const names = { name: 'Files', project_name: 'Files', environment_name: 'Files' };
  const job = await callApi(system, management, { method: 'POST', path: `${base}/jobs/`, body: names });
  const body = { job_id: job.data.id, engine_version: '1' };
  const { data } = await callApi(system, management, { method: 'POST', path: `${base}/runs/`, body });
  return `/api${base}/runs/${data.id}/`;
}

/** Sends a request whose path no client library has normalized. */
async function send(
  { system, management }: World,
  method: string,
  path: string,
  options: { body?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: string }> {
  const { hostname, port } = new URL(management.url);
  const { body = '', headers = {} } = options;
  const authorization = `Token ${system.token}`;
  const length = method === 'PUT' ? { 'content-length': String(Buffer.byteLength(body)) } : {};
  return await new Promise((resolve, reject) => {
    const request = httpRequest(
      { hostname, port, method, path, headers: { authorization, ...length, ...headers } },
      (response) => {
        const finish = (received: Buffer) =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: received.toString('latin1'),
          });
        buffer(response).then(finish, reject);
      },
    );
    request.on('error', reject);
    request.end(method === 'PUT' ? body : undefined);
  });
}

async function uploadActive(world: World): Promise<string[]> {
  const problems: string[] = [];
  for (const [path, [declaredType, content]] of Object.entries(ACTIVE_FILES)) {
    const url = `${world.run}artifacts/${path}`;
    const stored = await send(world, 'PUT', url, {
      body: content,
      headers: { 'content-type': declaredType },
    });
    if (stored.status !== 201) problems.push(`${path} is a ${stored.status}`);
    const { headers, body } = await send(world, 'GET', url, { headers: { accept: 'text/html' } });
    if (body !== content) problems.push(`${path} is changed`);
    if (!SAFE_TYPES.test(String(headers['content-type'])))
      problems.push(`${path} is served as ${headers['content-type']}`);
    const required = {
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'content-disposition': `attachment; filename="${path}"`,
      'cross-origin-resource-policy': 'same-origin',
    };
    for (const [name, value] of Object.entries(required))
      if (headers[name] !== value) problems.push(`${path} has ${name}: ${headers[name]}`);
  }
  return problems;
}

async function uploadBeyond(world: World): Promise<string[]> {
  const problems: string[] = [];
  const before = await listed(world);
  for (const path of PATHS) {
    for (const method of ['PUT', 'GET']) {
      const { status, headers } = await send(world, method, `${world.run}artifacts/${path}`, { body: 'x' });
      const isPlain = path === 'CON' && method === 'PUT' ? status === 201 : path === 'CON' || status >= 400;
      if (!isPlain || status >= 500) problems.push(`${method} ${path.slice(0, 50)} is a ${status}`);
      if (headers['x-injected'] !== undefined) problems.push(`${path} injects a header`);
    }
  }
  const after = await listed(world);
  if (after !== before && after !== before.replace('[', '["CON",')) problems.push(`the list has ${after}`);
  return problems;
}

async function listed(world: World): Promise<string> {
  const { body } = await send(world, 'GET', `${world.run}artifacts/`);
  return JSON.stringify(JSON.parse(body).data);
}

async function uploadTruncated(world: World): Promise<string[]> {
  const { system, management, run } = world;
  const before = await listed(world);
  const { hostname, port } = new URL(management.url);
  const head = (length: string) =>
    `PUT ${run}artifacts/cut.bin HTTP/1.1\r\nhost: x\r\nauthorization: Token ${system.token}\r\n${length}\r\n\r\n`;
  const requests = [
    `${head('content-length: 500000')}${'x'.repeat(300_000)}`,
    `${head('content-length: 99999999999')}x`,
    `${head('content-length: -1')}x`,
    `${head('content-length: 1, 2')}x`,
    `${head('content-length: 3\r\ntransfer-encoding: chunked')}0\r\n\r\n`,
    `${head('transfer-encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`,
  ];
  for (const text of requests) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await new Promise((resolve) => {
      socket.on('data', resolve);
      socket.on('close', resolve);
      socket.end(text);
    });
    socket.destroy();
  }
  const after = await listed(world);
  await eventually(async () => {
    const { rows } = await system.database.pool.query(
      `SELECT count(*)::int AS count FROM artifact_contents c
       WHERE NOT EXISTS (SELECT FROM artifacts a WHERE a.object_id = c.object_id)`,
    );
    if (rows[0].count > 0) throw new Error('contents of incomplete uploads remain');
  });
  return after === before ? [] : [`the list has ${after}`];
}

async function requestRanges(world: World): Promise<string[]> {
  const problems: string[] = [];
  const url = `${world.run}artifacts/manifest.json`;
  const many = Array.from({ length: 500 }, (_, index) => `${index}-`).join(',');
  for (const range of [`bytes=${many}`, 'bytes=9999999999999-', 'bytes=-9999999999999999999', 'bytes=5-1']) {
    const { status, body } = await send(world, 'GET', url, { headers: { range } });
    if (![200, 206, 416].includes(status) || body.length > 1_000)
      problems.push(`${range.slice(0, 30)} is a ${status} of ${body.length} bytes`);
  }
  return problems;
}
