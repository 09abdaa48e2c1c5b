import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('..', import.meta.url));
/** Matches variables of a developer's shell and of jest. */
const REMOVED_VARIABLES =
  /^(DATABASE_URL|QUEUE_URL|ENCRYPTION_KEYS|PORT|OPERATIONS_PORT|RUNHOOK_HOME|NODE_OPTIONS|npm_.*)$/;

export interface DevJson {
  baseUrl: string;
  account: { id: number; identifier: string };
  user: { id: number; email: string; password: string; apiKey: string };
  serviceToken: string;
  runnerToken: string;
  jobs: { id: number; name: string }[];
  subscription: { id: string; hmacSecret: string };
  receiverUrl: string;
  operationsUrl: string;
  dispatcherUrl: string;
  databaseUrl: string;
  managementDatabaseUrl: string;
  queueUrl: string;
  processes: Record<'management' | 'dispatcher' | 'receiver' | 'postgres' | 'redis', number | null>;
}

/** A running `node scripts/start.mjs` with closed input. */
export interface RunningStart {
  process: ChildProcess;
  output(): string;
  /** Resolves with the milliseconds since the start once the output contains the text. Rejects if the process ends without it. */
  waitFor(text: string): Promise<number>;
  dev(): DevJson;
  /** Exit code, or the signal that ended it. */
  exited: Promise<number | NodeJS.Signals | null>;
}

export function runStart(home: string, args: string[] = []): RunningStart {
  const inheritedEnvironment = Object.entries(process.env).filter(([name]) => !REMOVED_VARIABLES.test(name));
  const child = spawn(process.execPath, ['scripts/start.mjs', ...args], {
    cwd: CHECKOUT,
    env: { ...Object.fromEntries(inheritedEnvironment), RUNHOOK_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const startedAt = performance.now();
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      child.emit('output');
    });
  }
  const exited = once(child, 'close').then(([code, signal]) => code ?? signal);

  function waitFor(text: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!output.includes(text)) return;
        settle();
        resolve(performance.now() - startedAt);
      };
      const fail = () => {
        settle();
        reject(new Error(`"${text}" is missing in the output:\n${output}`));
      };
      const settle = () => {
        child.off('output', check).off('close', fail);
      };
      child.on('output', check).on('close', fail);
      check();
    });
  }

  return {
    process: child,
    output: () => output,
    waitFor,
    dev: () => JSON.parse(readFileSync(join(home, 'dev.json'), 'utf8')) as DevJson,
    exited,
  };
}

/** Returns the command lines of processes that refer to the home folder in arguments, environment or working folder. */
export function processesOf(home: string): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const read = (file: string) => readIfPresent(() => readFileSync(`/proc/${pid}/${file}`, 'utf8'));
      const all = [read('cmdline'), read('environ'), readIfPresent(() => readlinkSync(`/proc/${pid}/cwd`))];
      return all.some((text) => text.includes(home))
        ? [`${pid} ${read('cmdline').replaceAll('\0', ' ')}`]
        : [];
    });
}

/** Returns an empty text if the process has ended in the meantime. */
function readIfPresent(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
