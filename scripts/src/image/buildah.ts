import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Runs a command to its end and gives what it wrote; throws with all of that when it fails. */
export type Exec = (
  file: string,
  args: readonly string[],
  options?: { environment?: NodeJS.ProcessEnv; onLine?: ((line: string) => void) | undefined },
) => Promise<string>;

/** buildah with a store of its own, so that it leaves nothing behind and meets nobody. */
export interface Buildah {
  driver: string;
  /** Before every subcommand. */
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  run(args: readonly string[], onLine?: (line: string) => void): Promise<string>;
}

/** What an image says of how it is started, in Docker's words. */
export interface ImageConfig {
  User: string;
  Entrypoint: string[] | null;
  Cmd: string[] | null;
  WorkingDir: string;
  Healthcheck?: { Test: string[] };
}

/** @param folder empty, ours alone */
export async function openBuildah(folder: string, exec: Exec): Promise<Buildah> {
  const overlay = withDriver(join(folder, 'overlay'), 'overlay', exec);
  try {
    // Not in a container whose own files are an overlay.
    await overlay.run(['mount', (await overlay.run(['from', 'scratch'])).trim()]);
    return overlay;
  } catch {
    return withDriver(join(folder, 'vfs'), 'vfs', exec);
  }
}

function withDriver(folder: string, driver: string, exec: Exec): Buildah {
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary, { recursive: true });
  // What is only worth a warning would stand among what is read.
  const args = ['--log-level', 'error', '--root', join(folder, 'store'), '--runroot', join(folder, 'run')];
  const environment = { ...process.env, STORAGE_DRIVER: driver, TMPDIR: temporary };
  return {
    driver,
    args,
    environment,
    run: (rest, onLine) => exec('buildah', [...args, ...rest], { environment, onLine }),
  };
}

export async function readConfig(buildah: Buildah, image: string): Promise<ImageConfig> {
  const inspected = JSON.parse(await buildah.run(['inspect', '--type', 'image', image]));
  return inspected.Docker.config as ImageConfig;
}

/** Unmounts everything, without which the store could not be removed. */
export async function closeBuildah({ args, environment }: Buildah, exec: Exec): Promise<void> {
  await exec('buildah', [...args, 'rm', '--all'], { environment });
}
