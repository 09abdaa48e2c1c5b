import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from '@jest/globals';

/** The fixture imports the built package, as a service in production does: build packages/runtime first. */
const fixture = fileURLToPath(new URL('./service.fixture.mjs', import.meta.url));

interface Running {
  child: ChildProcess;
  lines: Record<string, unknown>[];
  waitForLine(word: string): Promise<void>;
  ended(): Promise<{ code: number | null; signal: string | null }>;
}

let running: Running | null = null;

function run(scenario = ''): Running {
  const child = spawn(process.execPath, [fixture, scenario], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {},
  });
  const lines: Record<string, unknown>[] = [];
  const output: Interface = createInterface({ input: child.stdout });
  output.on('line', (line) => lines.push(JSON.parse(line)));
  const exit = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  running = {
    child,
    lines,
    async waitForLine(word) {
      while (!lines.some(({ say }) => say === word)) await once(output, 'line');
    },
    ended: () => exit,
  };
  return running;
}

const parseLines = (lines: Record<string, unknown>[]) =>
  lines.flatMap(({ say }) => (say === undefined ? [] : [say]));

afterEach(() => void running?.child.kill('SIGKILL'));

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s runs all closers in reverse order and exits with 0',
  async (signal) => {
    const service = run();
    await service.waitForLine('running');
    service.child.kill(signal);
    expect(await service.ended()).toEqual({ code: 0, signal: null });
    expect(parseLines(service.lines)).toEqual(['running', 'worker closing', 'database closed']);
    expect(service.lines).toContainEqual(expect.objectContaining({ msg: 'stopping', reason: signal }));
  },
);

test('a second signal exits immediately with 1', async () => {
  const service = run('hang');
  await service.waitForLine('running');
  service.child.kill('SIGTERM');
  await service.waitForLine('worker closing');
  service.child.kill('SIGINT');
  expect(await service.ended()).toEqual({ code: 1, signal: null });
  expect(parseLines(service.lines)).not.toContain('database closed');
});

test('a stop that exceeds its time limit exits with 1 and logs the closer that it waited for', async () => {
  const service = run('outlast');
  await service.waitForLine('running');
  service.child.kill('SIGTERM');
  expect(await service.ended()).toEqual({ code: 1, signal: null });
  expect(parseLines(service.lines)).not.toContain('database closed');
  expect(service.lines).toContainEqual(
    expect.objectContaining({ level: 'error', closer: 'worker', budgetMs: 300 }),
  );
});

test.each([
  ['reject', 'unhandledRejection', 'an unhandled rejection'],
  ['throw', 'uncaughtException', 'an uncaught exception'],
])(
  'an uncaught error (scenario %s) is logged as fatal, everything is closed, and the exit code is 1',
  async (scenario, origin, message) => {
    const service = run(scenario);
    expect(await service.ended()).toEqual({ code: 1, signal: null });
    expect(service.lines).toContainEqual(
      expect.objectContaining({ level: 'fatal', origin, err: expect.objectContaining({ message }) }),
    );
    expect(parseLines(service.lines)).toContain('database closed');
  },
);

test('an unhandled rejection while closing makes the exit code 1 and does not prevent the other closers', async () => {
  const service = run('fault while closing');
  await service.waitForLine('running');
  service.child.kill('SIGTERM');
  expect(await service.ended()).toEqual({ code: 1, signal: null });
  expect(parseLines(service.lines)).toContain('database closed');
});

test('a service that closes itself exits with 0', async () => {
  const service = run('close');
  expect(await service.ended()).toEqual({ code: 0, signal: null });
  expect(parseLines(service.lines)).toContain('database closed');
});
