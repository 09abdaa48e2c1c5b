import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { signalGroup } from './child.ts';
import { readJson, writePrivateJson } from './home.ts';

/** Thrown if another running `npm start` owns the home folder. */
export class HomeInUse extends Error {
  override readonly name = 'HomeInUse';
  readonly pid: number;

  constructor(pid: number) {
    super(`npm start is running already (pid ${pid})`);
    this.pid = pid;
  }
}

interface RecordedProcess extends ProcessIdentity {
  name: string;
}

interface Recorded {
  owner: ProcessIdentity;
  processes: RecordedProcess[];
}

/**
 * Lists the owner of a home folder and its processes, in a file. It prevents a second `npm start`, and the next one learns which
 * processes a killed owner has left. The database servers are not included, because they have such a file themselves.
 */
export interface RunningRecord {
  add(name: string, pid: number): void;
  remove(pid: number): void;
  /** Sends SIGKILL to every listed process and its children. */
  killAll(): void;
  /** Removes the file, so that the home folder can be claimed. */
  release(): void;
}

const STOP_GRACE_MS = 10_000;
const POLL_MS = 50;
const WRITE_GRACE_MS = 200;

/**
 * Claims the home folder, and ends the processes that a killed owner left.
 *
 * @param onOrphan is called with each process before it is ended
 * @throws {HomeInUse}
 */
export async function claimHome(
  file: string,
  onOrphan: (name: string, pid: number) => void,
): Promise<RunningRecord> {
  const owner = identify(process.pid) ?? { pid: process.pid, startedAt: '' };
  const orphans: RecordedProcess[] = [];
  const processes: RecordedProcess[] = [];
  while (!createRecordFile(file, { owner, processes })) orphans.push(...(await removeStaleRecord(file)));
  const save = () => saveIfPossible(file, { owner, processes: [...orphans, ...processes] });
  // Saved before they are ended, so that none is forgotten if this process is killed.
  save();
  await Promise.all(
    orphans.filter(isStillRunning).map((orphan) => {
      onOrphan(orphan.name, orphan.pid);
      return stopProcess(orphan);
    }),
  );
  orphans.length = 0;
  save();

  return {
    add(name, pid) {
      const identity = identify(pid);
      if (identity === null) return;
      processes.push({ name, ...identity });
      save();
    },
    remove(pid) {
      const index = processes.findIndex((entry) => entry.pid === pid);
      if (index === -1) return;
      processes.splice(index, 1);
      save();
    },
    killAll() {
      for (const { pid } of processes) signalGroup(pid, 'SIGKILL');
    },
    release: () => rmSync(file, { force: true }),
  };
}

/** Creates the file. Returns false if it exists, so that only one of two concurrent starts succeeds. */
function createRecordFile(file: string, recorded: Recorded): boolean {
  try {
    writeFileSync(file, JSON.stringify(recorded), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Ignores a missing folder: a user may delete the home folder while it is in use, and the processes must still be stopped in order. */
function saveIfPossible(file: string, recorded: Recorded): void {
  try {
    writePrivateJson(file, recorded);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Removes the record of an owner that has ended, and returns its processes. */
async function removeStaleRecord(file: string): Promise<RecordedProcess[]> {
  // An unreadable file may be about to be written.
  if (readJson(file) === null) await wait(WRITE_GRACE_MS);
  throwIfOwned(readJson(file) as Recorded | null);
  const movedFile = `${file}.${process.pid}`;
  try {
    // Another start may have claimed the home folder in the meantime, so the moved file is checked again.
    renameSync(file, movedFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const orphan = readJson(movedFile) as Recorded | null;
  try {
    throwIfOwned(orphan);
  } catch (error) {
    renameSync(movedFile, file);
    throw error;
  }
  rmSync(movedFile);
  return orphan?.processes ?? [];
}

function throwIfOwned(orphan: Recorded | null): void {
  if (orphan !== null && isStillRunning(orphan.owner)) throw new HomeInUse(orphan.owner.pid);
}

async function stopProcess(identity: ProcessIdentity): Promise<void> {
  const deadline = Date.now() + STOP_GRACE_MS;
  signalGroup(identity.pid, 'SIGTERM');
  while (isStillRunning(identity)) {
    if (Date.now() > deadline) signalGroup(identity.pid, 'SIGKILL');
    await wait(POLL_MS);
  }
}

/** Identifies a process, and distinguishes it from a later one with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** Start time, as the operating system reports it. */
  startedAt: string;
}

/** Returns null if the process does not exist or is a zombie, which in a container may never be reaped. */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === 'linux' ? readLinuxStart(pid) : readPsStart(pid);
  return startedAt === null ? null : { pid, startedAt };
}

export function isStillRunning({ pid, startedAt }: ProcessIdentity): boolean {
  return identify(pid)?.startedAt === startedAt;
}

/** Reads /proc, because slim containers have no ps. The name that precedes the state may contain any character, even `)`. */
function readLinuxStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return null;
    // The start time is in ticks since boot, so the boot id is needed to distinguish two boots.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[18]}`;
  } catch {
    return null;
  }
}

function readPsStart(pid: number): string | null {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  const [state = 'Z', ...start] = (stdout ?? '').trim().split(/\s+/);
  return state.startsWith('Z') || start.length === 0 ? null : start.join(' ');
}
