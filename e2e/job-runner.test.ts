import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hasInvalidText, JOB_RUN_EVENTS, type PublishedEvent } from '@runhook/contract';
import { createQueueBackend, openEventQueue } from '@runhook/queue';
import { createTestDatabase, createTestQueueUrl, queueBackends, type TestDatabase } from '@runhook/testing';

const PROGRAM = fileURLToPath(new URL('../examples/job-runner/dist/main.js', import.meta.url));
const JOB = {
  accountId: 1,
  job: { id: 2, name: 'Nightly build' },
  project: { id: 3, name: 'Analytics' },
  environment: { id: 4, name: 'Production' },
  engineVersion: '1.9.2',
};

let folder: string;
let database: TestDatabase;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook job '));
  await writeFile(join(folder, 'job.json'), JSON.stringify(JOB));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
afterEach(() => database.drop());

const backends = queueBackends();

describe.each(backends)('the example job runner, with the queue on $name', (backend) => {
  /**
   * Runs the script with the runner, calls `duringRun` in the meantime, and returns the exit code and the queued
   * events.
   */
  async function run(script: string, duringRun?: (runner: ChildProcess) => Promise<void>) {
    database = await createTestDatabase();
    const queueUrl = await createTestQueueUrl(backend, database.url);
    const args = [PROGRAM, join(folder, 'job.json'), '--run-id', '77', '--reason', 'A test'];
    const runner = spawn(process.execPath, [...args, '--', process.execPath, '-e', script], {
      env: { PATH: process.env.PATH, QUEUE_URL: queueUrl },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exit = once(runner, 'exit') as Promise<[number | null]>;
    await duringRun?.(runner);
    const [exitCode] = await exit;
    return { exitCode, events: await readAllEvents(queueUrl) };
  }

  test('publishes job.run.started, then job.run.completed for a command that succeeds', async () => {
    const { exitCode, events } = await run('process.exit(process.env.QUEUE_URL === undefined ? 0 : 1)');
    expect(exitCode).toBe(0);
    expect(events.map(({ eventType, data }) => [eventType, data.runStatus, data.runStatusCode])).toEqual([
      ['job.run.started', 'Running', 3],
      ['job.run.completed', 'Success', 10],
    ]);
    expect(events[1]).toMatchObject({
      accountId: 1,
      data: {
        runId: '77',
        jobId: '2',
        runReason: 'A test',
        runStatusMessage: 'None',
        engineVersion: '1.9.2',
      },
    });
  });

  // The following tests do not depend on the queue.
  if (backend !== backends.at(-1)) return;

  test('publishes started, errored, completed for a failed command with its message; exits with its code', async () => {
    const { exitCode, events } = await run('console.error("3 rows have no customer"); process.exit(3)');
    expect(exitCode).toBe(3);
    expect(events.map(({ eventType, data }) => [eventType, data.runStatus, data.runStatusMessage])).toEqual([
      ['job.run.started', 'Running', 'None'],
      ['job.run.errored', 'Errored', '3 rows have no customer'],
      ['job.run.completed', 'Errored', '3 rows have no customer'],
    ]);
  });

  test('cuts a long error message between code points', async () => {
    const { events } = await run('console.error("x🚀".repeat(2000) + "🚀"); process.exit(1)');
    const message = events[1]?.data.runStatusMessage ?? '';
    expect([...message]).toHaveLength(1_999);
    expect(hasInvalidText(message)).toBe(false);
  });

  test('ends the command when it gets a signal, and publishes nothing more', async () => {
    const { exitCode, events } = await run(
      'console.log("up"); setInterval(() => {}, 1000)',
      async (runner) => {
        await once(runner.stdout as NodeJS.ReadableStream, 'data');
        runner.kill('SIGTERM');
      },
    );
    expect(exitCode).toBe(128 + 15);
    expect(events.map(({ eventType }) => eventType)).toEqual(['job.run.started']);
  });
});

/** Resolves with all events of the queue, in order. */
async function readAllEvents(queueUrl: string): Promise<PublishedEvent[]> {
  const backend = createQueueBackend(queueUrl);
  const queue = openEventQueue(backend, () => undefined);
  const { waiting = 0 } = await queue.counts();
  await queue.close();
  return await new Promise((resolve, reject) => {
    const events: PublishedEvent[] = [];
    const worker = backend.createWorker<PublishedEvent>(
      JOB_RUN_EVENTS,
      async ({ data }) => {
        events.push(data);
        if (events.length === waiting) setImmediate(() => worker.close().then(() => resolve(events), reject));
      },
      { concurrency: 1 },
    );
  });
}
