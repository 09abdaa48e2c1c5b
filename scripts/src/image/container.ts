import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { Buildah, Exec, ImageConfig } from './buildah.ts';
import { readConfig } from './buildah.ts';

export interface Container {
  name: string;
  config: ImageConfig;
  /** Folder on this machine that has the files of the container. */
  root: string;
}

/** A process in a container. */
export interface Program {
  output(): string;
  hasExited(): boolean;
  /** Resolves with the exit code. */
  exited: Promise<number | null>;
  /** Returns the kernel's status of the process itself, not of buildah; null before it exists. */
  find(): ProcessStatus | null;
  /** Ends buildah and the process. */
  kill(): void;
}

export interface ProcessStatus {
  pid: number;
  parent: number;
  uid: number;
  gid: number;
  /** Effective capabilities, in hexadecimal. */
  capabilities: string;
}

export async function createContainer(image: string, buildah: Buildah, exec: Exec): Promise<Container> {
  const name = (await buildah.run(['from', '--pull-never', image])).trim();
  const root = (await buildah.run(['mount', name])).trim();
  // Replaces the read-only root, which buildah does not support: a user who owns no file then cannot write anywhere.
  await exec('find', [root, '-xdev', '-type', 'd', '-perm', '-0002', '-exec', 'chmod', 'o-w', '{}', '+']);
  return { name, root, config: await readConfig(buildah, image) };
}

/** Starts the image's entry point, with `args` instead of its CMD if they are set. */
export function startProgram(
  { name, config }: Container,
  buildah: Buildah,
  environment: Record<string, string>,
  args: readonly string[] = config.Cmd ?? [],
): Program {
  const variables = Object.entries(environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
  const command = [...(config.Entrypoint ?? []), ...args];
  const child: ChildProcess = spawn(
    'buildah',
    [...buildah.args, 'run', '--isolation', 'chroot', ...variables, name, '--', ...command],
    { env: buildah.environment, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const uid = Number.parseInt(config.User, 10);
  return {
    output: () => output,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    exited,
    find: () => findDescendant(child.pid as number, uid, runningProcesses()),
    // buildah ends the program, too.
    kill: () => void child.kill('SIGTERM'),
  };
}

/** Returns the last process of the chain: the process of buildah that starts it already runs as its user. */
function findDescendant(pid: number, uid: number, processes: ProcessStatus[]): ProcessStatus | null {
  for (const child of processes.filter(({ parent }) => parent === pid)) {
    const found = findDescendant(child.pid, uid, processes) ?? (child.uid === uid ? child : null);
    if (found !== null) return found;
  }
  return null;
}

function runningProcesses(): ProcessStatus[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      const field = (key: string) => new RegExp(`^${key}:\\s+(\\w+)`, 'm').exec(status)?.[1] ?? '';
      const number = (key: string) => Number(field(key));
      const own = { pid: Number(name), parent: number('PPid'), uid: number('Uid'), gid: number('Gid') };
      return [{ ...own, capabilities: field('CapEff') }];
    } catch {
      // The process has ended since readdir.
      return [];
    }
  });
}
