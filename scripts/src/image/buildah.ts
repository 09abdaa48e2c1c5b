import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Runs a command and returns its output. Throws an error with the output if it fails. */
export type Exec = (
  file: string,
  args: readonly string[],
  options?: { environment?: NodeJS.ProcessEnv; onLine?: ((line: string) => void) | undefined },
) => Promise<string>;

/** Runs buildah with a separate store, so that it leaves no files and does not affect other builds. */
export interface Buildah {
  driver: string;
  /** Arguments that precede every subcommand. */
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  run(args: readonly string[], onLine?: (line: string) => void): Promise<string>;
}

/** The part of an image's configuration that determines how it starts, as Docker names it. */
export interface ImageConfig {
  User: string;
  Entrypoint: string[] | null;
  Cmd: string[] | null;
  WorkingDir: string;
  Healthcheck?: { Test: string[] };
}

/** @param folder empty, and used by this build only */
export async function openBuildah(folder: string, exec: Exec): Promise<Buildah> {
  const overlay = withDriver(join(folder, 'overlay'), 'overlay', exec);
  try {
    // Mounting fails in a container whose file system is an overlay.
    await overlay.run(['mount', (await overlay.run(['from', 'scratch'])).trim()]);
    return overlay;
  } catch {
    return withDriver(join(folder, 'vfs'), 'vfs', exec);
  }
}

function withDriver(folder: string, driver: string, exec: Exec): Buildah {
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary, { recursive: true });
  // Warnings would be mixed with the output that is parsed.
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

/** Unmounts all containers, because the store could not be removed otherwise. */
export async function closeBuildah({ args, environment }: Buildah, exec: Exec): Promise<void> {
  await exec('buildah', [...args, 'rm', '--all'], { environment });
}
