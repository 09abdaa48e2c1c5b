import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBaseImage, readBase } from './base-image.ts';
import type { Buildah, Exec } from './buildah.ts';
import { type Container, createContainer } from './container.ts';
import { configFindings, inspectImage, unwantedPackages } from './image-contents.ts';
import { registryMounts } from './registry-settings.ts';

const IMAGE_NAMES = ['migrate', 'management', 'dispatcher'];
const BYTES_PER_MB = 1_048_576;
const LINE_LENGTH_MAX = 100;

export interface Build {
  checkout: string;
  workspaceFolders: readonly string[];
  /** Empty, ours alone. */
  folder: string;
  /** Of Debian's packages; null for debootstrap's own. */
  mirror: string | null;
  buildah: Buildah;
  exec: Exec;
  say(line: string): void;
}

/** Builds the images from the Dockerfile as it is, looks through them, and answers a container of each. */
export async function buildImages(build: Build): Promise<Record<string, Container>> {
  const { checkout, folder, mirror, buildah, exec, say } = build;
  const base = readBase(readFileSync(join(checkout, 'Dockerfile'), 'utf8'));
  const nodeFolder = join(folder, 'node');
  mkdirSync(nodeFolder);
  say(`making ${base.tag} from Debian's packages and npm's node`);
  say(`${base.tag}: ${await makeBaseImage(base, { buildah, exec, folder: nodeFolder, mirror })}`);

  const mounts = await registryMounts(folder, exec);
  const baseContainer = await createContainer(base.tag, buildah, exec);
  const containers: Record<string, Container> = {};
  for (const name of IMAGE_NAMES) {
    const image = `localhost/runhook/${name}`;
    await buildImage(name, image, mounts, build);
    const container = await createContainer(image, buildah, exec);
    prove(name, container, baseContainer.root, build);
    containers[name] = container;
  }
  return containers;
}

async function buildImage(name: string, image: string, mounts: string[], { checkout, buildah, say }: Build) {
  // vfs copies the whole file system for each layer, which takes longer than to build the common stage once more.
  const layers = `--layers=${buildah.driver !== 'vfs'}`;
  const target = ['--target', name, '--tag', image];
  say(`building ${image}`);
  await buildah.run(
    [
      'build',
      '--isolation',
      'chroot',
      '--pull-never',
      '--format',
      'docker',
      layers,
      ...target,
      ...mounts,
      checkout,
    ],
    (line) => {
      if (/^\[\d+\/\d+\] (STEP|COMMIT)/.test(line)) say(`  ${line.slice(0, LINE_LENGTH_MAX)}`);
    },
  );
}

function prove(
  name: string,
  { root, config }: Container,
  base: string,
  { checkout, workspaceFolders, say }: Build,
) {
  const unwanted = unwantedPackages(checkout, workspaceFolders, name);
  const contents = inspectImage(root, { base, folder: config.WorkingDir, unwanted });
  const findings = [...configFindings(config), ...contents.findings];
  if (findings.length > 0) throw new Error(`${name}:\n  ${findings.join('\n  ')}`);
  const megabytes = (contents.bytes / BYTES_PER_MB).toFixed(1);
  say(
    `${name}: ${megabytes} MB on top of the base, ${contents.files} files, ${contents.packages} packages, nothing else`,
  );
}
