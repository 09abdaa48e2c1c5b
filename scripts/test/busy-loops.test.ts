import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { isRunning } from '../../packages/embedded/test/orphan-server.ts';
import { eventually } from '../../packages/testing/src/index.ts';

const MODULE = fileURLToPath(new URL('./run/busy-loops.mjs', import.meta.url));

/** Starts loops in another process, ends that process by `end` or a signal, and returns the pids once none of the loops runs. */
async function startLoops(end: string, signal?: NodeJS.Signals): Promise<number[]> {
  const script = `import { startBusyLoops } from ${JSON.stringify(MODULE)};
    process.stdout.write(JSON.stringify(startBusyLoops()) + '\\n');
    process.stdin.once('data', () => { ${end} });`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exit = once(parent, 'exit');
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  const pids = JSON.parse(line) as number[];
  for (const pid of pids) expect(await isRunning(pid)).toBe(true);
  if (signal === undefined) parent.stdin.end('end\n');
  else parent.kill(signal);
  await exit;
  await eventually(async () => {
    for (const pid of pids) expect(await isRunning(pid)).toBe(false);
  });
  return pids;
}

test.each([
  ['has no work left', 'process.stdin.destroy()', undefined],
  ['exits', 'process.exit(1)', undefined],
  ['is killed', '', 'SIGKILL' as const],
])('the loops of npm run test:busy end when the process that started them %s', async (_, end, signal) => {
  const pids = await startLoops(end, signal);
  expect(pids.length).toBeGreaterThanOrEqual(2);
});
