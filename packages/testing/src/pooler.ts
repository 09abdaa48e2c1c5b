import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  findFreePort,
  findProgram,
  selectServerAccount,
  serverEnvironment,
  spawnServer,
} from '@runhook/embedded';

/** A PgBouncer that is installed on this machine. */
export interface Pooler {
  file: string;
  version: string;
  /** Whether the pooler can track prepared statements, as PgBouncer 1.21 and newer can. */
  tracksStatements: boolean;
}

/** Returns the PgBouncer on the path and the one that `TEST_PGBOUNCER` names. */
export function findPoolers(): Pooler[] {
  const files = new Set([findProgram(['pgbouncer']), process.env.TEST_PGBOUNCER || null]);
  return [...files].filter((file) => file !== null).map(inspectPooler);
}

function inspectPooler(file: string): Pooler {
  const versionOutput = execFileSync(file, ['--version'], { encoding: 'utf8' });
  const [, major = '0', minor = '0'] = /PgBouncer (\d+)\.(\d+)/.exec(versionOutput) ?? [];
  const tracksStatements = Number(major) > 1 || Number(minor) >= 21;
  return { file, version: `${major}.${minor}`, tracksStatements };
}

/** Starts the pooler for the server of `databaseUrl`; `url` of the result leads to the same database through it. */
export async function startPooler(
  { file }: Pooler,
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname, port, username, password } = new URL(databaseUrl);
  const folder = await mkdtemp(join(tmpdir(), 'runhook-pooler-'));
  // PgBouncer does not run as root, so another account must be able to read the file.
  await chmod(folder, 0o711);
  const { port: listenPort } = await findFreePort();
  const options = {
    listen_addr: '127.0.0.1',
    listen_port: String(listenPort),
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
  };
  const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`);
  const database = `* = host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
  const configuration = join(folder, 'pgbouncer.ini');
  await writeFile(configuration, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'));
  await chmod(configuration, 0o644);
  const account = selectServerAccount(folder);
  let markReady = () => {};
  const ready = new Promise<void>((resolve) => {
    markReady = resolve;
  });
  const server = await spawnServer({
    file,
    args: [configuration],
    cwd: folder,
    env: serverEnvironment(),
    ...(account && { uid: account.uid, gid: account.gid }),
    onLog: (line) => line.includes('process up') && markReady(),
  });
  const ended = server.exited.then(() => {
    throw new Error(`${file} ended: ${server.lastLogLines().join('\n')}`);
  });
  ended.catch(() => undefined);
  await Promise.race([ready, ended]);
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${listenPort}`;
  return {
    url: url.href,
    close: async () => {
      await server.stop([{ signal: 'SIGINT', graceMs: 5_000 }]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
