import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { readJson, writePrivateJson } from './private-json.ts';
import { signalGroup } from './process-group.ts';
import { identify, isStillRunning, type ProcessIdentity } from './process-identity.ts';

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
