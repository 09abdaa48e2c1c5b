import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import { Redis } from 'ioredis';

const run = promisify(execFile);

export const hasRedisServer = findRedisServer() !== null;

/** Timeouts that only end a test that hangs; the speed of the machine must not decide a result. */
export const TEST_TIMEOUT_MS = 300_000;
export const WITHIN_TEST_TIMEOUT = { timeoutMs: 120_000, intervalMs: 50 };

/** Credentials that a test server requires. */
export interface Login {
  /** 127.0.0.1 when omitted. */
  host?: string;
  password?: string;
  tls?: { ca: Buffer; cert: Buffer; key: Buffer };
}

export interface RedisProcess {
  port: number;
  pid: number;
  kill(): Promise<void>;
}

export interface ServerOptions {
  folder: string;
  name: string;
  /** Returns the lines of redis.conf for the chosen port. */
  conf: (port: number) => readonly string[];
  isSentinel?: boolean;
  /** Port of the server; a free one when omitted. */
  port?: number;
  /** Listening address; 127.0.0.1 when omitted. */
  host?: string;
  /** A program with arguments that starts the server, such as `ip netns exec <name>`. */
  within?: readonly string[];
}

const STARTS_MAX = 20;

/**
 * Starts a server in `folder` on a free port. Resolves when it reports that it is ready. A server that ends before
 * that, because another process took its port or that of its cluster bus, is restarted on another port.
 */
export async function startServer(options: ServerOptions): Promise<RedisProcess> {
  const { folder, name, conf, isSentinel = false, host = '127.0.0.1', within = [] } = options;
  const file = join(folder, `${name}.conf`);
  let output = '';
  for (let start = 0; start < STARTS_MAX; start += 1) {
    const port = options.port ?? (await freePort());
    await writeFile(file, `${[`bind ${host}`, `dir ${folder}`, ...conf(port)].join('\n')}\n`);
    const [program = '', ...args] = [...within, findRedisServer() as string, file];
    const child = spawn(program, [...args, ...(isSentinel ? ['--sentinel'] : [])], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const log = createInterface({ input: child.stdout });
    const lines: string[] = [];
    log.on('line', (line) => lines.push(line));
    const isReady = await new Promise<boolean>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => resolve(false));
      log.on('line', (line) => READY.test(line) && resolve(true));
    });
    if (isReady) return { port, pid: child.pid as number, kill: () => waitForExit(child) };
    output = lines.join('\n');
  }
  throw new Error(`${name} did not start on ${STARTS_MAX} ports:\n${output}`);
}

const READY = /Ready to accept connections|Sentinel ID is/;

/**
 * Upper bound of the ports: no outgoing connection of this machine uses a lower one (net.ipv4.ip_local_port_range
 * begins at 32,768).
 */
const PORT_MAX = 32_000;
const PORT_MIN = 12_000;

/** Returns a port that is free together with the next one, which the bus of a cluster node uses. */
async function freePort(): Promise<number> {
  while (true) {
    const port = randomInt(PORT_MIN / 2, PORT_MAX / 2) * 2;
    if ((await isFree(port)) && (await isFree(port + 1))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

function waitForExit(child: ChildProcess): Promise<void> {
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

/** Returns the number of the server's clients, except the one that reads it. */
export async function countConnections(port: number): Promise<number> {
  const clients = String(await send(port, ['CLIENT', 'LIST', 'TYPE', 'normal']));
  return clients.split('\n').filter((line) => line.includes('addr=') && !line.includes('cmd=client')).length;
}

/** Starts three masters that share the slots. Resolves when all nodes agree. */
export async function startCluster(folder: string): Promise<RedisProcess[]> {
  const nodes: RedisProcess[] = [];
  for (const index of [0, 1, 2]) {
    const conf = (port: number) => [
      `port ${port}`,
      `cluster-port ${port + 1}`,
      'save ""',
      'cluster-enabled yes',
      `cluster-config-file nodes-${port}.conf`,
      // No test lets a node fail, and a slow machine must not appear as a failure.
      'cluster-node-timeout 60000',
      'maxmemory-policy noeviction',
    ];
    nodes.push(await startServer({ folder, name: `node-${index}`, conf }));
  }
  const slots = 16_384;
  for (const [index, { port }] of nodes.entries()) {
    const from = Math.floor((slots * index) / nodes.length);
    const to = Math.floor((slots * (index + 1)) / nodes.length) - 1;
    await send(port, ['CLUSTER', 'ADDSLOTSRANGE', String(from), String(to)]);
    await send(port, ['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)]);
  }
  for (const { port } of nodes.slice(1)) {
    await send(nodes[0]?.port ?? 0, ['CLUSTER', 'MEET', '127.0.0.1', String(port), String(port + 1)]);
  }
  await eventually(async () => {
    for (const { port } of nodes) {
      const info = String(await send(port, ['CLUSTER', 'INFO']));
      if (!/cluster_state:ok/.test(info) || !/cluster_known_nodes:3/.test(info)) throw new Error(info);
    }
  }, WITHIN_TEST_TIMEOUT);
  return nodes;
}

/** Creates a temporary certificate authority with a certificate for 127.0.0.1, by openssl. */
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

/** Opens a client for a test's own commands. */
export function connectTo(port: number): Redis {
  return new Redis(port);
}
