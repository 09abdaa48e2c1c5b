import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { signalGroup } from './child.ts';
import { readJson, writePrivateJson } from './home.ts';

/** The home belongs to another `npm start` that is still there. */
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
 * Who runs in a home, kept in a file: nobody else may start there meanwhile, and when the owner is killed, the next
 * one knows what it left. The database servers are not in it; they keep such a file of their own.
 */
export interface RunningRecord {
  add(name: string, pid: number): void;
  remove(pid: number): void;
  /** SIGKILL to every process in it, and what they have started. */
  killAll(): void;
  /** The home is free again. */
  release(): void;
}

const STOP_GRACE_MS = 10_000;
const POLL_MS = 50;
const UNWRITTEN_MS = 200;

/**
 * Claims the home, and ends what a killed owner left there.
 *
 * @param onLeftOver is told of each process before it is ended
 * @throws {HomeInUse}
 */
export async function claimHome(
  file: string,
  onLeftOver: (name: string, pid: number) => void,
): Promise<RunningRecord> {
  const owner = identify(process.pid) ?? { pid: process.pid, startedAt: '' };
  const leftOver: RecordedProcess[] = [];
  const processes: RecordedProcess[] = [];
  while (!create(file, { owner, processes })) leftOver.push(...(await takeAway(file)));
  const save = () => saveIfPossible(file, { owner, processes: [...leftOver, ...processes] });
  // Before they are ended, so that being killed in the middle of it forgets none.
  save();
  await Promise.all(
    leftOver.filter(isStillRunning).map((found) => {
      onLeftOver(found.name, found.pid);
      return end(found);
    }),
  );
  leftOver.length = 0;
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

/** Fails where the file is: of two starts at once, one gets it. */
function create(file: string, recorded: Recorded): boolean {
  try {
    writeFileSync(file, JSON.stringify(recorded), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Somebody may delete the home while it is in use; what runs must be stopped in order all the same. */
function saveIfPossible(file: string, recorded: Recorded): void {
  try {
    writePrivateJson(file, recorded);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Takes away the record of an owner that is gone, and gives the processes it names. */
async function takeAway(file: string): Promise<RecordedProcess[]> {
  // One that cannot be read may be about to be written.
  if (readJson(file) === null) await wait(UNWRITTEN_MS);
  refuseIfOwned(readJson(file) as Recorded | null);
  const aside = `${file}.${process.pid}`;
  try {
    // Somebody else may have claimed the home this very moment; what was moved is looked at again.
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const found = readJson(aside) as Recorded | null;
  try {
    refuseIfOwned(found);
  } catch (error) {
    renameSync(aside, file);
    throw error;
  }
  rmSync(aside);
  return found?.processes ?? [];
}

function refuseIfOwned(found: Recorded | null): void {
  if (found !== null && isStillRunning(found.owner)) throw new HomeInUse(found.owner.pid);
}

async function end(identity: ProcessIdentity): Promise<void> {
  const deadline = Date.now() + STOP_GRACE_MS;
  signalGroup(identity.pid, 'SIGTERM');
  while (isStillRunning(identity)) {
    if (Date.now() > deadline) signalGroup(identity.pid, 'SIGKILL');
    await wait(POLL_MS);
  }
}

/** A process that can be told from a later one with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** When it began, in the system's own words. */
  startedAt: string;
}

/** Null when there is no such process, a zombie included: in a container nothing may ever reap it. */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === 'linux' ? linuxStart(pid) : psStart(pid);
  return startedAt === null ? null : { pid, startedAt };
}

export function isStillRunning({ pid, startedAt }: ProcessIdentity): boolean {
  return identify(pid)?.startedAt === startedAt;
}

/** From /proc, because slim containers have no ps. The name before the state may hold anything, even `)`. */
function linuxStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return null;
    // Ticks since the boot, so that another boot may have them too.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[18]}`;
  } catch {
    return null;
  }
}

function psStart(pid: number): string | null {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  const [state = 'Z', ...start] = (stdout ?? '').trim().split(/\s+/);
  return state.startsWith('Z') || start.length === 0 ? null : start.join(' ');
}
