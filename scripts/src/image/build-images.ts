import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBaseImage, readBase } from './base-image.ts';
import type { Buildah, Exec } from './buildah.ts';
import { type Container, createContainer } from './container.ts';
import { inspectImage, unwantedPackages } from './image-contents.ts';

const IMAGE_NAMES = ['migrate', 'management', 'dispatcher'];
const BYTES_PER_MB = 1_048_576;
const LINE_LENGTH_MAX = 100;
/** Matches the lines of npm's settings that configure access to a registry. The other lines concern this machine. */
const REACHES_REGISTRY = /^\s*(\/\/|(@[^=]*:)?registry\b|(https?-|no)?proxy\b|strict-ssl\b)/;
const AUTHORITIES = '/run/registry-authorities.pem';

export interface Build {
  checkout: string;
  workspaceFolders: readonly string[];
  /** Empty, and used by this build only. */
  folder: string;
  /** Mirror of Debian's packages; null for debootstrap's default. */
  mirror: string | null;
  buildah: Buildah;
  exec: Exec;
  say(line: string): void;
}

/** Builds the images from the Dockerfile, inspects them, and returns a container of each. */
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

/** Returns mounts that give the build npm's access to the registry. Mounted files are not part of an image. */
async function registryMounts(folder: string, exec: Exec): Promise<string[]> {
  const ask = async (name: string) => (await exec('npm', ['--silent', 'config', 'get', name])).trim();
  const files = [await ask('globalconfig'), await ask('userconfig')].filter((file) => existsSync(file));
  const lines = files
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => REACHES_REGISTRY.test(line))
    .map((line) => line.replace(/\$\{(\w+)\}/g, (_, name) => process.env[name] ?? ''));
  // npm uses the last of several equal settings, whichever file has them.
  lines.push(`registry=${await ask('registry')}`);
  const mounts = [`${join(folder, 'npmrc')}:/root/.npmrc:ro`];
  const authorities = [await ask('cafile'), process.env.NODE_EXTRA_CA_CERTS ?? ''].find((file) =>
    existsSync(file),
  );
  if (authorities !== undefined) {
    lines.push(`cafile=${AUTHORITIES}`);
    mounts.push(`${authorities}:${AUTHORITIES}:ro`);
  }
  writeFileSync(join(folder, 'npmrc'), `${lines.join('\n')}\n`, { mode: 0o600 });
  return mounts.flatMap((mount) => ['--volume', mount]);
}

async function buildImage(name: string, image: string, mounts: string[], { checkout, buildah, say }: Build) {
  say(`building ${image}`);
  // vfs copies the file system for each layer, which takes longer than to build the common stage again.
  const layers = `--layers=${buildah.driver !== 'vfs'}`;
  const how = ['--isolation', 'chroot', '--pull-never', '--format', 'docker', layers, ...mounts];
  await buildah.run(['build', ...how, '--target', name, '--tag', image, checkout], (line) => {
    if (/^\[\d+\/\d+\] (STEP|COMMIT)/.test(line)) say(`  ${line.slice(0, LINE_LENGTH_MAX)}`);
  });
}

function prove(
  name: string,
  { root, config }: Container,
  base: string,
  { checkout, workspaceFolders, say }: Build,
) {
  const unwanted = unwantedPackages(checkout, workspaceFolders, name);
  const { bytes, files, packages, findings } = inspectImage(root, {
    base,
    folder: config.WorkingDir,
    unwanted,
  });
  if (findings.length > 0) throw new Error(`${name}:\n  ${findings.join('\n  ')}`);
  const megabytes = (bytes / BYTES_PER_MB).toFixed(1);
  say(`${name}: ${megabytes} MB on top of the base, ${files} files, ${packages} packages, nothing else`);
}
