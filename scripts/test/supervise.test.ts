import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Child, spawnChild } from '../src/child.ts';
import { claimHome } from '../src/running-record.ts';
import { type Supervised, supervise } from '../src/supervise.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

const IDLE = 'setInterval(() => {}, 1000)';

/** Supervises real node processes. `next` resolves when one was restarted. */
async function supervised(
  work: (context: {
    subject: Supervised<Child>;
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
    let onNext: (child: Child) => void = () => undefined;
    let isToFail = false;
    const start = async () => {
      if (isToFail) {
        isToFail = false;
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
    const subject = await supervise<Child>({
      start,
      onDeath: (_, how) => deaths.push(how),
      onStartedAgain: (child) => onNext(child),
      onFailedStart: (error) => failedStarts.push(error),
    });
    const next = () =>
      new Promise<Child>((resolve) => {
        onNext = resolve;
      });
    const failNextStart = () => {
      isToFail = true;
    };
    await work({ subject, next, deaths, failedStarts, failNextStart });
    await subject.stop();
    expect(subject.current.hasExited()).toBe(true);
    record.release();
  });
}

test('a process that dies is restarted with another pid', async () => {
  await supervised(async ({ subject, next, deaths }) => {
    const before = subject.current.pid;
    const again = next();
    process.kill(before, 'SIGKILL');
    expect((await again).pid).not.toBe(before);
    expect(subject.current).toBe(await again);
    expect(deaths).toEqual(['was ended by SIGKILL']);
  });
});

test('a failed start is repeated', async () => {
  await supervised(async ({ subject, next, failedStarts, failNextStart }) => {
    const again = next();
    failNextStart();
    process.kill(subject.current.pid, 'SIGKILL');
    await again;
    expect(failedStarts.map(({ message }) => message)).toEqual(['not now']);
  });
});

test('a requested restart is not reported as a death, and resolves when the new process is ready', async () => {
  await supervised(async ({ subject, deaths }) => {
    const before = subject.current.pid;
    await subject.restart();
    expect(subject.current.pid).not.toBe(before);
    expect(subject.current.hasExited()).toBe(false);
    expect(deaths).toEqual([]);
  });
});

test('a stopped process is not restarted', async () => {
  await supervised(async ({ subject, deaths }) => {
    await subject.stop();
    expect(subject.current.hasExited()).toBe(true);
    expect(deaths).toEqual([]);
  });
});

test('a stop during a start ends the process that the start creates', async () => {
  await supervised(async ({ subject }) => {
    process.kill(subject.current.pid, 'SIGKILL');
    await subject.current.exited;
    await subject.stop();
    expect(subject.current.hasExited()).toBe(true);
  });
});
