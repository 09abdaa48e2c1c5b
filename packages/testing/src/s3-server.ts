import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A server with the API of S3: moto of PyPI. */
export interface S3Server {
  endpoint: string;
  /** Creates a bucket. */
  createBucket(name: string): Promise<void>;
  /** Stops the server, which loses all objects. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
}

/** Program of moto: `MOTO_SERVER`, else the one of the PATH. */
const PROGRAM = process.env.MOTO_SERVER ?? 'moto_server';

/** Returns why there is no S3 server, or null: `python3 -m venv v && v/bin/pip install 'moto[server,s3]'` provides it. */
export function missingS3Server(): string | null {
  const { error } = spawnSync(PROGRAM, ['--help'], { stdio: 'ignore' });
  return error ? `no S3 server: ${PROGRAM} of PyPI's moto[server] is not installed (${error.message})` : null;
}

export async function startS3Server(): Promise<S3Server> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const server: S3Server = {
    endpoint,
    async createBucket(name) {
      const response = await fetch(`${endpoint}/${name}`, { method: 'PUT' });
      if (!response.ok) throw new Error(`bucket not created: ${response.status}`);
    },
    async stop() {
      if (child === undefined || child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    async start() {
      child = spawn(PROGRAM, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
      while (
        !(await fetch(endpoint).then(
          () => true,
          () => false,
        ))
      ) {
        if (child.exitCode !== null) throw new Error(`${PROGRAM} ended with ${child.exitCode}`);
        await wait(50);
      }
    },
  };
  await server.start();
  return server;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new TypeError('no port');
  return address.port;
}
