import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Where one `npm start` keeps its things: `.runhook`, or `RUNHOOK_HOME`. */
export interface Home {
  folder: string;
  /** For scripts, while it runs. */
  devJson: string;
  /** What the demo account is known by; stays. */
  credentials: string;
  /** The encryption keys of the data; stay. */
  secrets: string;
  /** Whose the home is at the moment, and what runs in it. */
  running: string;
  logs: string;
  /** Job files for `examples/job-runner`. */
  jobs: string;
  postgres: string;
  redis: string;
}

/** @param given `RUNHOOK_HOME`; relative to the working folder, and nothing counts as not given */
export function homeAt(checkout: string, given: string | undefined): Home {
  const folder = given ? resolve(given) : join(checkout, '.runhook');
  return {
    folder,
    devJson: join(folder, 'dev.json'),
    credentials: join(folder, 'credentials.json'),
    secrets: join(folder, 'secrets.json'),
    running: join(folder, 'running.json'),
    logs: join(folder, 'logs'),
    jobs: join(folder, 'jobs'),
    postgres: join(folder, 'postgres'),
    redis: join(folder, 'redis'),
  };
}

/** Makes the folder. As root, PostgreSQL runs under another account, which must be able to pass through. */
export function makeHome(home: Home): void {
  if (mkdirSync(home.folder, { recursive: true }) !== undefined) chmodSync(home.folder, 0o711);
}

/** Takes away what an earlier start wrote that no longer holds. Only for who has claimed the home. */
export function clearHome(home: Home): void {
  rmSync(home.devJson, { force: true });
  rmSync(home.logs, { recursive: true, force: true });
  mkdirSync(home.logs, { mode: 0o700 });
  mkdirSync(home.jobs, { recursive: true, mode: 0o700 });
}
