import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { availableMemory } from 'node:process';

/** A run of all tests needs about 400 MB at its peak, and two runs may be concurrent. */
const FREE_BYTES_MIN = 6 * 2 ** 30;
const TEST_FOLDER_NAME = /^runhook-[a-z-]+-(\d+)-/;

/**
 * Makes a folder for the data of the test servers, with `tmp` for files of the tests. It is in memory if there is enough, because
 * each test has a separate database, which costs a disk some 700 files that are created and deleted. Other accounts may traverse
 * it, since PostgreSQL does not run as root.
 *
 * @param {string} name of the run, part of the folder's name
 * @param {{ memory?: string, disk?: string, freeBytesMin?: number }} [options] for tests
 * @returns {Promise<{ folder: string, environment: { TMPDIR: string, TEST_PICTURES: string }, remove: () => Promise<void> }>}
 * `environment` is for the tests: pictures of failures are written outside of the folder
 */
export async function makeTestFolder(name, options = {}) {
  const { memory = '/dev/shm', disk = tmpdir(), freeBytesMin = FREE_BYTES_MIN } = options;
  const parent = (await hasSpace(memory, freeBytesMin)) ? memory : disk;
  if (parent === memory) await removeOrphanedFolders(memory);
  const folder = await mkdtemp(join(parent, `runhook-${name}-${process.pid}-`));
  await chmod(folder, 0o711);
  const temporary = join(folder, 'tmp');
  await mkdir(temporary);
  await chmod(temporary, 0o1777);
  return {
    folder,
    environment: { TMPDIR: temporary, TEST_PICTURES: disk },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/** Whether the folder has enough capacity and permits execution, because PostgreSQL's programs may be copied to it for another account. */
async function hasSpace(folder, freeBytesMin) {
  try {
    const { bsize, bavail } = await statfs(folder);
    if (Math.min(bsize * bavail, availableMemory()) < freeBytesMin) return false;
    const probe = await mkdtemp(join(folder, 'runhook-probe-'));
    try {
      const program = join(probe, 'program');
      await writeFile(program, '#!/bin/sh\n', { mode: 0o755 });
      return spawnSync(program, { stdio: 'ignore' }).status === 0;
    } finally {
      await rm(probe, { recursive: true, force: true });
    }
  } catch {
    return false;
  }
}

/** Removes the folders of killed runs, whose memory would otherwise never be freed. */
async function removeOrphanedFolders(parent) {
  for (const entry of await readdir(parent)) {
    const pid = TEST_FOLDER_NAME.exec(entry)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    await rm(join(parent, entry), { recursive: true, force: true }).catch(() => undefined);
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
