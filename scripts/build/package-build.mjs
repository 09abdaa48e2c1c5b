import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { root, workspaceFolders } from '../shared/workspace.mjs';

const OURS = /^@runhook\//;

/** The packages that others install: those with a `publishConfig`. Each with its folder and its package.json. */
export function publishedPackages() {
  return allPackages().filter(({ manifest }) => manifest.publishConfig !== undefined);
}

function allPackages() {
  return workspaceFolders().map((folder) => ({ folder, manifest: manifestOf(folder) }));
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
}

/**
 * Makes a folder that `npm pack` and `npm publish` take as it is: what is ours and private is bundled, with its types in one
 * file for each export; everything else is a dependency. The checkout has to be built.
 *
 * @param {{ folder: string, manifest: Record<string, any> }} source
 * @param {string} to emptied first
 */
export async function stagePackage({ folder, manifest }, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const entries = entriesOf(manifest);
  const imported = await bundle(folder, entries, join(to, 'dist'));
  writeFileSync(
    join(to, 'package.json'),
    `${JSON.stringify(publishedManifest(manifest, imported), null, 2)}\n`,
  );
  for (const [from, name] of [
    [join(root, folder, 'README.md'), 'README.md'],
    [join(root, 'LICENSE'), 'LICENSE'],
  ])
    if (existsSync(from)) cpSync(from, join(to, name));
}

/** Of `exports` and `bin`: the name of each file in `dist/`, without what it ends with. */
function entriesOf({ exports = {}, bin = {} }) {
  const files = [...Object.values(exports).map((one) => one.default ?? one), ...Object.values(bin)];
  return files.filter((file) => file.endsWith('.js')).map((file) => /^\.\/dist\/(.+)\.js$/.exec(file)[1]);
}

/** What tsc has made of each entry, and what it declares. Answers the names of the packages that are imported at run time. */
async function bundle(folder, entries, to) {
  // Installed by bootstrap, so not to be imported before it.
  const [{ rolldown }, { dts }] = await Promise.all([import('rolldown'), import('rolldown-plugin-dts')]);
  const external = (id) => !/^[./]/.test(id) && !OURS.test(id);
  const inputs = (ending) =>
    Object.fromEntries(entries.map((name) => [name, join(root, folder, 'dist', `${name}${ending}`)]));
  const write = async (input, plugins) => {
    // Nothing of ours does any work at import, so that what is not used is left out with all that it would load.
    const treeshake = { moduleSideEffects: false };
    const bundled = await rolldown({ input, plugins, external, treeshake, platform: 'node', cwd: root });
    const { output } = await bundled.write({ dir: to, format: 'esm', chunkFileNames: 'chunks/[name].js' });
    await bundled.close();
    return output;
  };
  const code = await write(inputs('.js'), []);
  await write(inputs('.d.ts'), [dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false })]);
  const imports = code.flatMap((chunk) => importsIn(chunk.code ?? ''));
  return [...new Set(imports.filter((id) => external(id) && !isBuiltin(id)).map(packageName))].sort();
}

/** As they are written: what rolldown lists for a chunk has those, too, that it left out as nothing of them is used. */
function importsIn(code) {
  const found = code.matchAll(
    /^(?:import|export)\s(?:[^'"\n]*\sfrom\s)?['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm,
  );
  return [...found].map(([, id, dynamicId]) => id ?? dynamicId);
}

function packageName(id) {
  return id
    .split('/')
    .slice(0, id.startsWith('@') ? 2 : 1)
    .join('/');
}

/**
 * The package.json that is published: the version of the whole, and for each import the version that it was tested with, or
 * anything newer that promises to be compatible. What it can do without is named in `peerDependencies` by the package itself.
 */
function publishedManifest(manifest, imported) {
  const whole = manifestOf('.');
  const { name, description, keywords, type, exports, bin, peerDependencies, peerDependenciesMeta } =
    manifest;
  const dependencies = Object.fromEntries(
    imported
      .filter((one) => peerDependencies?.[one] === undefined)
      .map((one) => [one, `^${versionOf(manifest, one)}`]),
  );
  const { license, repository, homepage, bugs, engines } = whole;
  const known = { name, version: whole.version, description, keywords, license, repository, homepage, bugs };
  const told = {
    ...known,
    type,
    engines,
    sideEffects: false,
    exports: exports && withoutSources(exports),
    types: exports?.['.']?.types,
    bin,
    files: ['dist'],
    publishConfig: manifest.publishConfig,
    ...(Object.keys(dependencies).length > 0 && { dependencies }),
    peerDependencies,
    peerDependenciesMeta,
  };
  return JSON.parse(JSON.stringify(told));
}

function withoutSources(exports) {
  return Object.fromEntries(
    Object.entries(exports).map(([path, { source: _, ...conditions }]) => [path, conditions]),
  );
}

/** As the package names it, or one of ours that is bundled into it. */
function versionOf({ dependencies = {} }, wanted) {
  if (dependencies[wanted] !== undefined) return dependencies[wanted];
  const ours = allPackages().filter(({ manifest }) => dependencies[manifest.name] !== undefined);
  return ours.map(({ manifest }) => versionOf(manifest, wanted)).find((version) => version !== undefined);
}
