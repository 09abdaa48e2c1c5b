import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { claimHome, HomeInUse, identify, isStillRunning } from '../src/running-record.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

const noOrphans = () => undefined;
const GONE = { pid: process.pid, startedAt: 'at another time' };

async function startIdleProcess(): Promise<{ child: ChildProcess; pid: number }> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    detached: true,
    stdio: 'ignore',
  });
  await once(child, 'spawn');
  return { child, pid: child.pid as number };
}

test('the home folder of npm start is rejected while its owner runs, and can be claimed after its release', async () => {
  await inTemporaryFolder(async (folder) => {
    const file = join(folder, 'running.json');
    const record = await claimHome(file, noOrphans);
    await expect(claimHome(file, noOrphans)).rejects.toBeInstanceOf(HomeInUse);
    record.release();
    (await claimHome(file, noOrphans)).release();
    expect(existsSync(file)).toBe(false);
  });
});

test('exactly one of many concurrent claims gets the home folder', async () => {
  await inTemporaryFolder(async (folder) => {
    const file = join(folder, 'running.json');
    writeFileSync(file, JSON.stringify({ owner: GONE, processes: [] }));
    const claims = await Promise.allSettled(Array.from({ length: 10 }, () => claimHome(file, noOrphans)));
    expect(claims.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

test('processes that a killed owner left are ended, and a process that reuses such a pid is not', async () => {
  await inTemporaryFolder(async (folder) => {
    const file = join(folder, 'running.json');
    const [ownRecord, otherRecord] = [await startIdleProcess(), await startIdleProcess()];
    const exited = once(ownRecord.child, 'exit');
    const processes = [
      { name: 'dispatcher', ...identify(ownRecord.pid) },
      { name: 'management', pid: otherRecord.pid, startedAt: 'at another time' },
    ];
    writeFileSync(file, JSON.stringify({ owner: GONE, processes }));
    const orphans: [string, number][] = [];
    const record = await claimHome(file, (name, pid) => orphans.push([name, pid]));
    expect(orphans).toEqual([['dispatcher', ownRecord.pid]]);
    expect(await exited).toEqual([null, 'SIGTERM']);
    expect(identify(otherRecord.pid)).not.toBeNull();
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ owner: identify(process.pid), processes: [] });
    otherRecord.child.kill('SIGKILL');
    record.release();
  });
});

test('a process is identified by its pid and its start time, until it has ended', async () => {
  const { child, pid } = await startIdleProcess();
  const identity = identify(pid);
  expect(identity?.pid).toBe(pid);
  if (identity === null) return;
  expect(isStillRunning(identity)).toBe(true);
  expect(isStillRunning({ ...identity, startedAt: 'at another time' })).toBe(false);
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  expect(isStillRunning(identity)).toBe(false);
});
