import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import { Redis } from 'ioredis';

const run = promisify(execFile);

/** What a server of the tests asks of its clients. */
export interface Login {
  password?: string;
  tls?: { ca: Buffer; cert: Buffer; key: Buffer };
}

/** The bus of a cluster node listens 10,000 above its port. */
const CLUSTER_PORT_MAX = 55_000;

export interface RedisProcess {
  port: number;
  kill(): Promise<void>;
}

export async function freePort(): Promise<number> {
  while (true) {
    const port = await new Promise<number>((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as { port: number };
        server.close(() => resolve(port));
      });
    });
    if (port <= CLUSTER_PORT_MAX) return port;
  }
}

/** A server of our own in `folder`; `flags` are lines of redis.conf. Resolves when it answers. */
export async function startServer(
  folder: string,
  name: string,
  port: number,
  flags: readonly string[],
  { isSentinel = false, options = {} }: { isSentinel?: boolean; options?: Login } = {},
): Promise<RedisProcess> {
  const file = join(folder, `${name}.conf`);
  const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...flags];
  await writeFile(file, `${lines.join('\n')}\n`);
  const program = findRedisServer() as string;
  const child = spawn(program, [file, ...(isSentinel ? ['--sentinel'] : [])], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const tlsPort = flags.map((flag) => /^tls-port (\d+)$/.exec(flag)?.[1]).find(Boolean);
  await eventually(() => send(Number(tlsPort ?? port), ['PING'], options), { timeoutMs: 10_000 });
  return { port, kill: () => killed(child) };
}

function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

export async function send(port: number, command: readonly string[], options: Login = {}): Promise<unknown> {
  const [name = '', ...args] = command;
  const client = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    ...options,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

/** Three masters that share the slots; resolves when all of them agree. */
export async function startCluster(folder: string, flags: readonly string[] = []): Promise<RedisProcess[]> {
  const nodes: RedisProcess[] = [];
  for (const index of [0, 1, 2]) {
    const port = await freePort();
    nodes.push(
      await startServer(folder, `node-${index}`, port, [
        'save ""',
        'cluster-enabled yes',
        `cluster-config-file nodes-${index}.conf`,
        'cluster-node-timeout 2000',
        'maxmemory-policy noeviction',
        ...flags,
      ]),
    );
  }
  const slots = 16_384;
  for (const [index, { port }] of nodes.entries()) {
    const from = Math.floor((slots * index) / nodes.length);
    const to = Math.floor((slots * (index + 1)) / nodes.length) - 1;
    await send(port, ['CLUSTER', 'ADDSLOTSRANGE', String(from), String(to)]);
    await send(port, ['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)]);
  }
  for (const { port } of nodes.slice(1)) {
    await send(nodes[0]?.port ?? 0, ['CLUSTER', 'MEET', '127.0.0.1', String(port)]);
  }
  await eventually(
    async () => {
      for (const { port } of nodes) {
        const info = String(await send(port, ['CLUSTER', 'INFO']));
        if (!/cluster_state:ok/.test(info) || !/cluster_known_nodes:3/.test(info)) throw new Error(info);
      }
    },
    { timeoutMs: 20_000, intervalMs: 100 },
  );
  return nodes;
}

/** A throw-away authority with a certificate for 127.0.0.1, by openssl. */
export async function makeCertificates(folder: string): Promise<{ ca: string; cert: string; key: string }> {
  const path = (name: string) => join(folder, name);
  const openssl = (args: string[]) => run('openssl', args, { cwd: folder });
  const subject = (name: string) => [
    '-subj',
    `/CN=${name}`,
    '-nodes',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
  ];
  await openssl([
    'req',
    '-x509',
    ...subject('test authority'),
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
  ]);
  await openssl(['req', ...subject('redis'), '-keyout', 'redis.key', '-out', 'redis.csr']);
  await writeFile(path('names'), 'subjectAltName=IP:127.0.0.1\n');
  await openssl([
    ...['x509', '-req', '-in', 'redis.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
    ...['-out', 'redis.pem', '-days', '2', '-extfile', 'names'],
  ]);
  return { ca: path('ca.pem'), cert: path('redis.pem'), key: path('redis.key') };
}
