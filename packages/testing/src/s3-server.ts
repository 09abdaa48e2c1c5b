import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { findFreePort } from '@runhook/embedded';
import { eventually } from './eventually.ts';

/** A server with the API of S3: moto of PyPI. */
export interface S3Server {
  endpoint: string;
  /** Creates a bucket. */
  createBucket(name: string): Promise<void>;
  /** Stops the server, which loses all objects. */
  stop(): Promise<void>;
}

/** Program of moto: `MOTO_SERVER`, else the one of the PATH. */
const PROGRAM = process.env.MOTO_SERVER ?? 'moto_server';

/** Returns why there is no S3 server, or null: `python3 -m venv v && v/bin/pip install 'moto[server,s3]'` provides it. */
export function missingS3Server(): string | null {
  const { error } = spawnSync(PROGRAM, ['--help'], { stdio: 'ignore' });
  return error ? `no S3 server: ${PROGRAM} of PyPI's moto[server] is not installed (${error.message})` : null;
}

export async function startS3Server(): Promise<S3Server> {
  const { port } = await findFreePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const child = spawn(PROGRAM, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const server: S3Server = {
    endpoint,
    async createBucket(name) {
      const response = await fetch(`${endpoint}/${name}`, { method: 'PUT' });
      if (!response.ok) throw new Error(`bucket not created: ${response.status}`);
    },
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
  try {
    await Promise.race([
      eventually(() => fetch(endpoint)),
      exited.then(([code]) => Promise.reject(new Error(`${PROGRAM} ended with ${code}`))),
    ]);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}
