import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { inTemporaryFolder } from './temporary-folder.ts';

// The module is plain JavaScript without types, because it runs before anything is compiled.
const { makeTestFolder } = (await import(String(new URL('./run/test-folder.mjs', import.meta.url)))) as {
  makeTestFolder(
    name: string,
    options: { memory?: string; disk?: string; freeBytesMin?: number },
  ): Promise<{
    folder: string;
    environment: { TMPDIR: string; TEST_PICTURES: string };
    remove(): Promise<void>;
  }>;
};

test('the test folder is in memory when there is enough, lets other accounts traverse it, and is removed with its content', async () => {
  await inTemporaryFolder(async (memory) => {
    const { folder, environment, remove } = await makeTestFolder('some', { memory, freeBytesMin: 0 });
    expect(dirname(folder)).toBe(memory);
    expect((await stat(folder)).mode & 0o777).toBe(0o711);
    expect((await stat(environment.TMPDIR)).mode & 0o7777).toBe(0o1777);
    expect(environment.TEST_PICTURES.startsWith(folder)).toBe(false);
    await remove();
    expect(existsSync(folder)).toBe(false);
  });
});

test('the test folder is on the disk when memory is short or unavailable', async () => {
  await inTemporaryFolder(async (disk) => {
    const memory = join(disk, 'memory');
    const none = await makeTestFolder('some', { memory, disk, freeBytesMin: 0 });
    await mkdir(memory);
    const short = await makeTestFolder('some', { memory, disk, freeBytesMin: Number.POSITIVE_INFINITY });
    expect([none, short].map(({ folder }) => dirname(folder))).toEqual([disk, disk]);
  });
});

test('makeTestFolder removes only what a killed run left in memory', async () => {
  await inTemporaryFolder(async (memory) => {
    const { pid } = spawnSync(process.execPath, ['--version']);
    const [dead, alive, foreign] = [`runhook-test-${pid}-a`, `runhook-test-${process.pid}-a`, 'else'].map(
      (name) => join(memory, name),
    ) as [string, string, string];
    for (const folder of [dead, alive, foreign]) await mkdir(join(folder, 'postgres'), { recursive: true });
    await makeTestFolder('some', { memory, freeBytesMin: 0 });
    expect([dead, alive, foreign].map((folder) => existsSync(folder))).toEqual([false, true, true]);
  });
});
