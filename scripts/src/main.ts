import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ServerFailed } from '@runhook/embedded';
import { Lifecycle } from '@runhook/runtime';
import { deliveryLine } from './deliveries.ts';
import { createDemonstration, createJobRunner, type Demonstration, demoRuns } from './demonstration.ts';
import type { DevJson } from './home.ts';
import { clearHome, type Home, makeHome, readJson, resolveHome, writePrivateJson } from './home.ts';
import { claimHome, HomeInUse, type RunningRecord } from './running-record.ts';
import { createPortChooser } from './service.ts';
import { readSettings, StartFailed, type StartSettings } from './settings.ts';
import { openStack, type Stack } from './stack.ts';
import type { Stopping } from './supervise.ts';
import type { Terminal } from './terminal.ts';
import { summary } from './terminal.ts';

/** Folder of the checkout, from `scripts/dist`. */
const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const DEMONSTRATION_MS = 60_000;
const REJECTED_ATTEMPTS = 2;
/** The waits before the second and third attempt are one and two base delays, each multiplied by at most 1.2. */
const REJECTION_WAITS = 3.6;
const INTERRUPTED = 130;

export interface StartOptions {
  terminal: Terminal;
  stopping: Stopping;
  /** Whether to exit after the demonstration. */
  isOnce: boolean;
}

/**
 * Runs `npm start` (docs/architecture.md#without-anything-installed): starts everything below the home folder, runs the
 * demonstration, waits for Ctrl-C, and stops everything. Resolves with the exit code: 0; 1 if something failed; 130 if it was
 * interrupted before it had finished.
 */
export async function start({ terminal, stopping, isOnce }: StartOptions): Promise<number> {
  const startedAt = performance.now() - process.uptime() * 1000;
  const fault = new AbortController();
  const ending: Stopping = { ...stopping, signal: AbortSignal.any([stopping.signal, fault.signal]) };
  let exitCode = 0;
  const fail = (text: string) => {
    exitCode = 1;
    terminal.error(text);
  };
  const lifecycle = createLifecycle(fail);
  const onFault = (error: unknown) => {
    fail(textOf(error));
    fault.abort(error);
  };
  process.on('uncaughtException', onFault).on('unhandledRejection', onFault);

  let hasStartedDemo = false;
  let isUp = false;
  try {
    const settings = readSettings(process.env);
    const home = resolveHome(CHECKOUT, process.env.RUNHOOK_HOME);
    const record = await openHome({ home, terminal, stopping, lifecycle });
    hasStartedDemo = true;
    const started = await openEverything({ settings, home, record, terminal, stopping: ending, lifecycle });
    isUp = true;
    terminal.line();
    terminal.line(terminal.style.bold(`Ready in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`));

    terminal.line();
    const problems = await started.demonstration.run();
    terminal.line();
    for (const line of summary(started.stack.describe(), terminal.style)) terminal.line(line);
    terminal.line();
    if (problems.length === 0) terminal.line(`${terminal.style.green('✓')} demonstration passed`);
    else fail(`The demonstration failed:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);

    if (!isOnce) {
      terminal.line(terminal.style.dim(`Logs: ${home.logs}`));
      terminal.line(terminal.style.dim('Ctrl-C stops everything.'));
      await aborted(ending.signal);
      // A failed demonstration was reported already; waiting and stopping on request succeeded.
      if (!fault.signal.aborted) exitCode = 0;
    }
  } catch (error) {
    if (!ending.signal.aborted) fail(textOf(error));
    else if (!fault.signal.aborted) exitCode = isUp && !isOnce ? 0 : INTERRUPTED;
  }
  if (!hasStartedDemo) return exitCode;
  terminal.line();
  await terminal.step(
    'stopping',
    () => lifecycle.close('the end'),
    () => 'everything stopped',
  );
  return exitCode;
}

async function openHome(options: {
  home: Home;
  terminal: Terminal;
  stopping: Stopping;
  lifecycle: Lifecycle;
}): Promise<RunningRecord> {
  const { home, terminal, stopping, lifecycle } = options;
  makeHome(home);
  const record = await claimHome(home.running, (name, pid) =>
    terminal.note(`an earlier start was killed: ending its ${name} (pid ${pid})`),
  ).catch((error) => {
    if (!(error instanceof HomeInUse)) throw error;
    const { baseUrl } = (readJson(home.devJson) ?? {}) as Partial<DevJson>;
    throw new StartFailed(`${error.message} in ${home.folder}: ${baseUrl ?? 'it is not ready yet'}`);
  });
  lifecycle.onClose('home', () => record.release());
  stopping.onSecondSignal(() => {
    record.killAll();
    rmSync(home.devJson, { force: true });
    record.release();
  });
  clearHome(home);
  return record;
}

/** Starts all processes, writes `dev.json`, and creates the demonstration. */
async function openEverything(options: {
  settings: StartSettings;
  home: Home;
  record: RunningRecord;
  terminal: Terminal;
  stopping: Stopping;
  lifecycle: Lifecycle;
}): Promise<{ stack: Stack; demonstration: Demonstration }> {
  const { settings, home, record, terminal, stopping, lifecycle } = options;
  stopping.signal.throwIfAborted();
  const rejections = Math.min(REJECTED_ATTEMPTS, settings.retriesMax);
  let demonstration: Demonstration | null = null;
  let onChange = () => {};

  const stack = await openStack({
    ...options,
    checkout: CHECKOUT,
    choosePort: createPortChooser(),
    onPortTaken: (name, taken, port) => terminal.note(`port ${taken} is taken: ${name} uses ${port}`),
    reject: (jobId) => (demonstration?.isOver ? null : { jobId, attempts: rejections }),
    onDelivery(delivery) {
      terminal.line(deliveryLine(delivery, terminal.style));
      demonstration?.observe(delivery);
    },
    onChange: () => onChange(),
  });

  const writeDevJson = () => writePrivateJson(home.devJson, stack.describe());
  writeDevJson();
  onChange = writeDevJson;
  lifecycle.onClose('dev.json', () => {
    onChange = () => {};
    rmSync(home.devJson, { force: true });
  });

  const { api, contents } = stack;
  const { demo } = contents;
  const runs = demoRuns(demo.jobs);
  const jobRunner = createJobRunner({
    checkout: CHECKOUT,
    home,
    record,
    runs,
    accountId: demo.account.id,
    url: () => stack.describe().baseUrl,
    token: demo.runnerToken,
  });
  lifecycle.onClose('demonstration', () => jobRunner.stop());
  demonstration = createDemonstration({
    terminal,
    runs,
    jobRunner,
    rejections,
    api,
    subscriptionId: stack.describe().subscription.id,
    deadlineMs: DEMONSTRATION_MS + REJECTION_WAITS * settings.retryBaseDelayMs,
    signal: stopping.signal,
  });
  return { stack, demonstration };
}

function createLifecycle(fail: (text: string) => void): Lifecycle {
  const error = (context: { err?: Error; closer?: string }) =>
    fail(`${context.closer} could not be stopped: ${context.err?.message}`);
  const silent = () => undefined;
  return new Lifecycle({ logger: { info: silent, fatal: silent, error: error as () => void } });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Returns the message of an expected error, and the stack of any other. */
function textOf(error: unknown): string {
  if (error instanceof StartFailed || error instanceof ServerFailed) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
