import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningPostgres, startPostgres } from '@runhook/embedded';
import { prepareTemplate } from './template-database.ts';

/** A PostgreSQL server with the migrated template, and a streaming replica of it. */
export interface ReplicatedPostgres {
  primaryUrl: string;
  replicaUrl: string;
  killReplica(): Promise<void>;
  /** Starts the replica on its previous port. */
  startReplica(): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: '60' };

/** A program that ends the servers whose pids it received when its standard input is closed. */
const GUARD_SCRIPT = `
  let pids = '';
  process.stdin.setEncoding('utf8').on('data', (text) => { pids += text; }).on('end', () => {
    for (const pid of pids.trim().split('\\n')) try { process.kill(Number(pid), 'SIGQUIT'); } catch {}
  });`;

/**
 * Starts the guard. Each server is a separate process group, so without the guard it would continue to run if the
 * tests are interrupted, e.g. by Ctrl-C.
 */
function startGuard() {
  const guard = spawn(process.execPath, ['-e', GUARD_SCRIPT], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  return {
    watch: (pid: number) => void guard.stdin.write(`${pid}\n`),
    dismiss: () => void guard.kill('SIGKILL'),
  };
}

/**
 * Starts both servers. The replica's data are a copy of the stopped primary's, because the embedded binaries do not
 * include pg_basebackup.
 */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-replica-'));
  // Other accounts must be able to traverse it, because PostgreSQL does not run as root.
  await chmod(folder, 0o711);
  const [primaryDir, replicaDir] = [join(folder, 'primary'), join(folder, 'replica')];
  const guard = startGuard();
  const startGuarded = async (starting: Promise<RunningPostgres>) => {
    const server = await starting;
    guard.watch(server.pid);
    return server;
  };
  const startPrimary = () => startGuarded(startPostgres({ dataDir: primaryDir, settings: SETTINGS }));
  const initialPrimary = await startPrimary();
  await prepareTemplate(initialPrimary.url);
  await initialPrimary.stop();
  // Preserves the owners, which the server requires, and copies the targets of links.
  execFileSync('cp', ['-R', '-p', '-L', primaryDir, replicaDir]);
  await writeFile(join(replicaDir, 'data', 'standby.signal'), '');
  const primary = await startPrimary();
  const { username, password, port: primaryPort } = new URL(primary.url);
  const primary_conninfo = `host=127.0.0.1 port=${primaryPort} user=${username} password=${password}`;
  const startReplica = (port?: number) =>
    startGuarded(
      startPostgres({
        dataDir: replicaDir,
        ...(port !== undefined && { port }),
        settings: { ...SETTINGS, primary_conninfo },
      }),
    );
  let replica: RunningPostgres = await startReplica();
  return {
    primaryUrl: primary.url,
    replicaUrl: replica.url,
    killReplica: () => replica.kill(),
    startReplica: async () => {
      replica = await startReplica(replica.port);
    },
    close: async () => {
      await replica.stop();
      await primary.stop();
      guard.dismiss();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
