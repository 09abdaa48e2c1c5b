import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** Matches files of this repository's packages. Only those that run may be in an image. */
const OWN_FILE = /^(?!.*node_modules\/)|node_modules\/@runhook\/[^/]+\/(?!.*node_modules\/)/;
const NON_RUNTIME_FILE = /(^|\/)(src|tests?|coverage)\/|\.test\.|\.ts$|\.map$/;
const FORBIDDEN_PATH = /(^|\/)(\.env|\.npmrc|\.git)(\/|$|\.)|\.(pem|key|p12)$|(^|\/)id_rsa/;
/** Matches the paths where buildah mounts file systems while a container runs. */
const MOUNT_POINTS = /^(dev|proc|sys|run)\//;

export interface ImageContents {
  files: number;
  bytes: number;
  /** Number of installed packages; one with other peers counts again, as in pnpm's ids. */
  packages: number;
  /** One line for each file or package that should not be in the image. */
  findings: string[];
}

/**
 * Inspects what an image adds to its base: nothing outside its own folder, no development dependency, no other service, no source,
 * no test, no secret, no link that leads out.
 *
 * @param unwanted names of packages
 */
export function inspectImage(
  root: string,
  { base, folder, unwanted }: { base: string; folder: string; unwanted: ReadonlySet<string> },
): ImageContents {
  const basePaths = new Set(pathsBelow(base));
  const added = pathsBelow(root).filter((path) => !basePaths.has(path) && !MOUNT_POINTS.test(path));
  const prefix = `${relative('/', folder)}/`;
  const findings = added
    .filter((path) => !path.startsWith(prefix))
    .map((path) => `${path} is outside ${folder}`);
  let bytes = 0;
  for (const path of added.filter((path) => path.startsWith(prefix))) {
    const name = path.slice(prefix.length);
    const status = lstatSync(join(root, path));
    bytes += status.size;
    if (status.isSymbolicLink() && !pointsInside(join(root, path), join(root, folder)))
      findings.push(`${name} is a link that leads out of the image`);
    if (!OWN_FILE.test(name)) continue;
    if (FORBIDDEN_PATH.test(name)) findings.push(`${name} must not be in an image`);
    if (NON_RUNTIME_FILE.test(name.replace(/^.*node_modules\/@runhook\/[^/]+\//, '')))
      findings.push(`${name} is not needed at run time`);
  }
  const packages = readdirSync(join(root, folder, 'node_modules', '.pnpm')).filter((id) =>
    id.includes('@', 1),
  );
  for (const id of packages) {
    const name = id.slice(0, id.indexOf('@', 1)).replace('+', '/');
    if (unwanted.has(name)) findings.push(`${id} is not a production dependency of this service`);
  }
  return { files: added.length, bytes, packages: packages.length, findings };
}

/**
 * Returns the packages that only development needs, and the other services. Packages of types are excluded, because dependencies
 * require them.
 */
export function unwantedPackages(
  checkout: string,
  workspaceFolders: readonly string[],
  service: string,
): Set<string> {
  const manifests = ['.', ...workspaceFolders].map((folder) =>
    JSON.parse(readFileSync(join(checkout, folder, 'package.json'), 'utf8')),
  );
  const production = new Set(manifests.flatMap(({ dependencies = {} }) => Object.keys(dependencies)));
  const development = manifests.flatMap(({ devDependencies = {} }) => Object.keys(devDependencies));
  const services = ['management', 'dispatcher', 'migrate'].filter((name) => name !== service);
  return new Set([
    ...development.filter((name) => !production.has(name) && !name.startsWith('@types/')),
    ...services.map((name) => `@runhook/${name}`),
  ]);
}

function pointsInside(link: string, folder: string): boolean {
  return existsSync(link) && realpathSync(link).startsWith(realpathSync(folder) + sep);
}

/** Returns all paths but folders, relative to the root. */
function pathsBelow(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? pathsBelow(root, path) : [path];
  });
}
