import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';

/** Of our own packages an image holds what runs, and nothing that it was made from. */
const NOT_IN_OURS = /(^|\/)(src|test|tests|coverage)\/|\.test\.|\.ts$|\.map$/;
const NEVER = /(^|\/)(\.env|\.npmrc|\.git)(\/|$|\.)|\.(pem|key|p12)$|(^|\/)id_rsa/;

export interface ImageContents {
  files: number;
  bytes: number;
  /** `name@version` of everything below node_modules. */
  packages: string[];
  /** One line for each thing that should not be there, or is missing. */
  findings: string[];
}

/**
 * Looks through the files of an image's folder: production dependencies only, nothing of another service, no sources,
 * no tests, no secrets, no link that leads out.
 */
export function inspectImage(folder: string, serviceName: string): ImageContents {
  const files: string[] = [];
  const findings: string[] = [];
  let bytes = 0;
  walk(folder, (path, isLink) => {
    const name = relative(folder, path).split(sep).join('/');
    if (isLink) {
      if (!existsSync(path) || !realpathSync(path).startsWith(realpathSync(folder) + sep))
        findings.push(`${name} is a link that leads out of the image`);
      return;
    }
    files.push(name);
    bytes += statSync(path).size;
    if (NEVER.test(name) && !name.includes('/node_modules/'))
      findings.push(`${name} must not be in an image`);
    if (isOurs(name) && NOT_IN_OURS.test(withoutPrefix(name))) findings.push(`${name} is nothing that runs`);
  });
  const needed = productionPackages(folder);
  const present = installedPackages(folder);
  for (const name of present) if (!needed.has(name)) findings.push(`${name} is no production dependency`);
  for (const name of needed) if (!present.has(name)) findings.push(`${name} is missing`);
  for (const other of ['management', 'dispatcher', 'migrate']) {
    if (other !== serviceName && present.has(`@runhook/${other}`))
      findings.push(`@runhook/${other} is another service`);
  }
  return { files: files.length, bytes, packages: [...present].sort(), findings };
}

/** A file of ours: outside node_modules, or in one of our packages there. */
function isOurs(name: string): boolean {
  return !name.includes('node_modules/') || /node_modules\/@runhook\/[^/]+\/(?!node_modules)/.test(name);
}

function withoutPrefix(name: string): string {
  return name.replace(/^.*node_modules\/@runhook\/[^/]+\//, '');
}

function walk(folder: string, visit: (path: string, isLink: boolean) => void): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) visit(path, true);
    else if (entry.isDirectory()) walk(path, visit);
    else if (entry.isFile()) visit(path, false);
  }
}

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  /** An optional peer may be named here alone. */
  peerDependenciesMeta?: Record<string, unknown>;
}

/** Everything that is reached from the service over what its packages say they need to run. */
function productionPackages(folder: string): Set<string> {
  const names = new Set<string>();
  const seen = new Set<string>();
  const visit = (packageFolder: string) => {
    const real = realpathSync(packageFolder);
    if (seen.has(real)) return;
    seen.add(real);
    const manifest = manifestOf(real);
    if (real !== realpathSync(folder)) names.add(manifest.name);
    const required = Object.keys(manifest.dependencies ?? {});
    const optional = Object.keys({
      ...manifest.optionalDependencies,
      ...manifest.peerDependencies,
      ...manifest.peerDependenciesMeta,
    });
    for (const name of new Set([...required, ...optional])) {
      const found = findPackage(real, name);
      if (found !== null) visit(found);
      else if (!optional.includes(name)) names.add(name);
    }
  };
  visit(folder);
  return names;
}

function findPackage(from: string, name: string): string | null {
  const paths = createRequire(join(from, 'package.json')).resolve.paths(name) ?? [];
  return paths.map((path) => join(path, name)).find((path) => existsSync(join(path, 'package.json'))) ?? null;
}

/** By the layout of pnpm: `node_modules/.pnpm/<id>/node_modules/<name>`, real folders only. */
function installedPackages(folder: string): Set<string> {
  const names = new Set<string>();
  const store = join(folder, 'node_modules', '.pnpm');
  for (const id of readdirSync(store)) {
    const modules = join(store, id, 'node_modules');
    if (id === 'node_modules' || !existsSync(modules)) continue;
    for (const manifest of packageManifests(modules)) names.add(manifestOf(dirname(manifest)).name);
  }
  return names;
}

function packageManifests(modules: string): string[] {
  return readdirSync(modules, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [];
    const path = join(modules, entry.name);
    if (entry.name.startsWith('@')) return packageManifests(path);
    const manifest = join(path, 'package.json');
    return existsSync(manifest) ? [manifest] : [];
  });
}

function manifestOf(packageFolder: string): Manifest {
  return JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as Manifest;
}
