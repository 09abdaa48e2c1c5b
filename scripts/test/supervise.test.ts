import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Child, spawnChild } from '../src/child.ts';
import { claimHome } from '../src/running-record.ts';
import { type Supervised, supervise } from '../src/supervise.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

const IDLE = 'setInterval(() => {}, 1000)';

/** Supervises real node processes. `next` resolves when one was restarted. */
async function withSupervised(
  work: (context: {
    supervisor: Supervised<Child>;
    next: () => Promise<Child>;
    deaths: string[];
    failedStarts: Error[];
    failNextStart: () => void;
  }) => Promise<void>,
): Promise<void> {
  await inTemporaryFolder(async (folder) => {
    const record = await claimHome(join(folder, 'running.json'), () => undefined);
    const deaths: string[] = [];
    const failedStarts: Error[] = [];
    let onNextStart: (child: Child) => void = () => undefined;
    let shouldFail = false;
    const start = async () => {
      if (shouldFail) {
        shouldFail = false;
        throw new Error('not now');
      }
      return await spawnChild({
        name: 'idle',
        args: ['-e', IDLE],
        cwd: folder,
        env: {},
        logFile: join(folder, 'idle.log'),
        record,
        stopGraceMs: 5_000,
      });
    };
    const supervisor = await supervise<Child>({
      start,
      onExit: (_, how) => deaths.push(how),
      onRestart: (child) => onNextStart(child),
      onStartFailure: (error) => failedStarts.push(error),
    });
    const next = () =>
      new Promise<Child>((resolve) => {
        onNextStart = resolve;
      });
    const failNextStart = () => {
      shouldFail = true;
    };
    await work({ supervisor, next, deaths, failedStarts, failNextStart });
    await supervisor.stop();
    expect(supervisor.current.hasExited()).toBe(true);
    record.release();
  });
}

test('a supervised process that dies is restarted with another pid', async () => {
  await withSupervised(async ({ supervisor, next, deaths }) => {
    const previous = supervisor.current.pid;
    const restarted = next();
    process.kill(previous, 'SIGKILL');
    expect((await restarted).pid).not.toBe(previous);
    expect(supervisor.current).toBe(await restarted);
    expect(deaths).toEqual(['was ended by SIGKILL']);
  });
});

test('a restart of a supervised process that fails is repeated', async () => {
  await withSupervised(async ({ supervisor, next, failedStarts, failNextStart }) => {
    const restarted = next();
    failNextStart();
    process.kill(supervisor.current.pid, 'SIGKILL');
    await restarted;
    expect(failedStarts.map(({ message }) => message)).toEqual(['not now']);
  });
});

test('a requested restart of a supervised process is not reported as a death, and resolves when the new process is ready', async () => {
  await withSupervised(async ({ supervisor, deaths }) => {
    const previous = supervisor.current.pid;
    await supervisor.restart();
    expect(supervisor.current.pid).not.toBe(previous);
    expect(supervisor.current.hasExited()).toBe(false);
    expect(deaths).toEqual([]);
  });
});

test('a process that its supervisor has stopped is not restarted', async () => {
  await withSupervised(async ({ supervisor, deaths }) => {
    await supervisor.stop();
    expect(supervisor.current.hasExited()).toBe(true);
    expect(deaths).toEqual([]);
  });
});

test('a stop of a supervisor during a restart ends the process that the restart creates', async () => {
  await withSupervised(async ({ supervisor }) => {
    process.kill(supervisor.current.pid, 'SIGKILL');
    await supervisor.current.exited;
    await supervisor.stop();
    expect(supervisor.current.hasExited()).toBe(true);
  });
});
