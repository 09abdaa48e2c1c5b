import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningPostgres, startPostgres } from '@runhook/embedded';
import { prepareTemplate } from './template-database.ts';

/** A PostgreSQL with the migrated template, and another that streams from it. */
export interface ReplicatedPostgres {
  primaryUrl: string;
  replicaUrl: string;
  killReplica(): Promise<void>;
  /** On the port that it had. */
  startReplica(): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: '60' };

/** Ends the servers whose pids it was given once nobody can give it more. */
const GUARD = `
  let pids = '';
  process.stdin.setEncoding('utf8').on('data', (text) => { pids += text; }).on('end', () => {
    for (const pid of pids.trim().split('\\n')) try { process.kill(Number(pid), 'SIGQUIT'); } catch {}
  });`;

/** A server is a group of its own: nobody else ends it when the tests are ended in the middle, by Ctrl-C for one. */
function startGuard() {
  const guard = spawn(process.execPath, ['-e', GUARD], {
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
 * Starts both. The replica's data are a copy of the primary's, which is stopped for that: the embedded binaries have no
 * pg_basebackup.
 */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-replica-'));
  // Other accounts may pass: PostgreSQL does not run as root.
  await chmod(folder, 0o711);
  const [ofPrimary, ofReplica] = [join(folder, 'primary'), join(folder, 'replica')];
  const guard = startGuard();
  const guarded = async (starting: Promise<RunningPostgres>) => {
    const server = await starting;
    guard.watch(server.pid);
    return server;
  };
  const startPrimary = () => guarded(startPostgres({ dataDir: ofPrimary, settings: SETTINGS }));
  const first = await startPrimary();
  await prepareTemplate(first.url);
  await first.stop();
  // With the owners that the server insists on, and what a link leads to.
  execFileSync('cp', ['-R', '-p', '-L', ofPrimary, ofReplica]);
  await writeFile(join(ofReplica, 'data', 'standby.signal'), '');
  const primary = await startPrimary();
  const { username, password, port: primaryPort } = new URL(primary.url);
  const primary_conninfo = `host=127.0.0.1 port=${primaryPort} user=${username} password=${password}`;
  const startReplica = (port?: number) =>
    guarded(
      startPostgres({
        dataDir: ofReplica,
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
