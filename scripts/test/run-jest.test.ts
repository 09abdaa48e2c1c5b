import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { inTemporaryFolder } from './temporary-folder.ts';

const part = (name: string) => fileURLToPath(new URL(`./run/${name}`, import.meta.url));
const { runJest } = (await import(part('run-jest.mjs'))) as {
  runJest(options: {
    args: string[];
    environment: Record<string, string>;
    folder: string;
    signal: AbortSignal;
    exitWithinMs: number;
    print: (text: string) => void;
  }): Promise<{ isSuccess: boolean; passed: number; failed: number }>;
};

/** A test that passes and leaves a process running. */
const LEAVES_A_PROCESS = `
const { spawn } = require('node:child_process');
const { writeFileSync } = require('node:fs');
test('passes', () => {
  const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'inherit' });
  writeFileSync(process.env.PID_FILE, String(pid));
});
`;

test('a process that a test leaves running fails the run, and is ended', async () => {
  await inTemporaryFolder(async (folder) => {
    const config = join(folder, 'jest.config.json');
    const pidFile = join(folder, 'pid');
    await writeFile(join(folder, 'leaves.test.js'), LEAVES_A_PROCESS);
    await writeFile(
      config,
      JSON.stringify({
        rootDir: folder,
        testMatch: ['**/*.test.js'],
        reporters: [part('reporter.mjs')],
        watchman: false,
      }),
    );
    const printed: string[] = [];
    const results = await runJest({
      args: ['--config', config],
      environment: { PID_FILE: pidFile },
      folder,
      signal: new AbortController().signal,
      exitWithinMs: 100,
      print: (text) => void printed.push(text),
    });
    expect(results).toMatchObject({ isSuccess: false, passed: 1, failed: 0 });
    const pid = Number(await readFile(pidFile, 'utf8'));
    expect(printed.join()).toMatch(new RegExp(`still running[^]+ ${pid} .*setInterval`));
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'));
  });
});
