import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { availableMemory } from 'node:process';

/** A run of all tests fills some 400 MB at its highest, and two may run side by side. */
const ROOM_MIN_BYTES = 6 * 2 ** 30;
const NAME = /^runhook-[a-z-]+-(\d+)-/;

/**
 * A folder for the data of tests' servers, with `tmp` for what the tests themselves put down: in memory where there is
 * plenty, as each test has a database of its own, and most of what that costs a disk is some 700 files made and deleted.
 * Other accounts may pass, since PostgreSQL does not run as root.
 *
 * @param {string} name of what runs, for people
 * @param {{ memory?: string, disk?: string, roomMinBytes?: number }} [options] for tests
 * @returns {Promise<{ folder: string, environment: { TMPDIR: string, TEST_PICTURES: string }, remove: () => Promise<void> }>}
 * `environment` is for the tests: pictures of what failed stay, outside the folder
 */
export async function makeTestFolder(name, options = {}) {
  const { memory = '/dev/shm', disk = tmpdir(), roomMinBytes = ROOM_MIN_BYTES } = options;
  const parent = (await isRoomy(memory, roomMinBytes)) ? memory : disk;
  if (parent === memory) await removeLeftBehind(memory);
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

/** Has room, and lets programs run: PostgreSQL's own may be copied to where its account can read them. */
async function isRoomy(folder, roomMinBytes) {
  try {
    const { bsize, bavail } = await statfs(folder);
    if (Math.min(bsize * bavail, availableMemory()) < roomMinBytes) return false;
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

/** Of runs that were killed: nobody else gives that memory back. */
async function removeLeftBehind(parent) {
  for (const entry of await readdir(parent)) {
    const pid = NAME.exec(entry)?.[1];
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
