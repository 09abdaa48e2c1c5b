import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Buildah, Exec } from './buildah.ts';

/** An image of Node that a Dockerfile starts from: `node:26.10.0-trixie-slim`. */
export interface Base {
  tag: string;
  /** The full version, or a prefix of it. */
  nodeVersion: string;
  debianRelease: string;
}

/** Package that Node needs and that Debian's minimal base does not include. */
const EXTRA_PACKAGES = 'libatomic1';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const APT_CACHES = ['var/cache/apt/archives', 'var/lib/apt/lists'];

export function readBase(dockerfile: string): Base {
  const [, tag, nodeVersion, debianRelease] = /^FROM (node:([\d.]+)-([a-z]+)-slim) /m.exec(dockerfile) ?? [];
  if (tag === undefined || nodeVersion === undefined || debianRelease === undefined)
    throw new Error('the Dockerfile is not built FROM node:<version>-<release of Debian>-slim');
  return { tag, nodeVersion, debianRelease };
}

/**
 * Makes a substitute for the base image without an image registry: Debian of the same release from its packages, Node of the same
 * version from npm, and npm. It has the tag that the Dockerfile names.
 *
 * @param folder empty
 * @param mirror of Debian's packages; null for debootstrap's default
 * @returns the versions, for messages
 */
export async function makeBaseImage(
  { tag, nodeVersion, debianRelease }: Base,
  { buildah, exec, folder, mirror }: { buildah: Buildah; exec: Exec; folder: string; mirror: string | null },
): Promise<string> {
  const container = (await buildah.run(['from', 'scratch'])).trim();
  const root = (await buildah.run(['mount', container])).trim();
  const packages = ['--variant=minbase', `--include=${EXTRA_PACKAGES}`, debianRelease, root];
  await exec('debootstrap', mirror === null ? packages : [...packages, mirror]);
  for (const cache of APT_CACHES)
    for (const name of readdirSync(join(root, cache))) rmSync(join(root, cache, name), { recursive: true });

  const local = join(root, 'usr', 'local');
  const nodePackage = `node-${process.platform}-${process.arch}`;
  const install = ['install', '--no-save', '--ignore-scripts', '--prefix'];
  await exec('npm', [...install, folder, `${nodePackage}@${nodeVersion}`]);
  copyFileSync(join(folder, 'node_modules', nodePackage, 'bin', 'node'), join(local, 'bin', 'node'));
  await exec('npm', [...install, local, '--global', 'npm']);

  await buildah.run(['config', '--env', `PATH=${PATH}`, container]);
  const commit = ['commit', '--quiet', '--rm', '--format', 'docker'];
  const versions = await exec('chroot', [
    root,
    'sh',
    '-c',
    'node --version; npm --version; cat /etc/debian_version',
  ]);
  await buildah.run([...commit, container, `docker.io/library/${tag}`]);
  const [node, npm, debian] = versions.trim().split('\n');
  return `node ${node}, npm ${npm}, Debian ${debian}`;
}
