import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { root, workspaceFolders } from '../shared/workspace.mjs';

const OWN_PACKAGE = /^@runhook\//;

/** Returns the packages that users install, which have a `publishConfig`, each with its folder and its package.json. */
export function publishedPackages() {
  return allPackages().filter(({ manifest }) => manifest.publishConfig !== undefined);
}

function allPackages() {
  return workspaceFolders().map((folder) => ({ folder, manifest: readManifest(folder) }));
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
}

/**
 * Makes a folder that `npm pack` and `npm publish` use without changes: private packages of this repository are bundled, with their
 * types in one file for each export; everything else is a dependency. The checkout must be built.
 *
 * @param {{ folder: string, manifest: Record<string, any> }} source
 * @param {string} to emptied first
 */
export async function stagePackage({ folder, manifest }, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const entries = listEntries(manifest);
  const imported = await bundle(folder, entries, join(to, 'dist'));
  writeFileSync(
    join(to, 'package.json'),
    `${JSON.stringify(createPublishedManifest(manifest, imported), null, 2)}\n`,
  );
  for (const [from, name] of [
    [join(root, folder, 'README.md'), 'README.md'],
    [join(root, 'LICENSE'), 'LICENSE'],
  ])
    if (existsSync(from)) cpSync(from, join(to, name));
}

/** Returns the name of each file in `dist/` that `exports` or `bin` lists, without its extension. */
function listEntries({ exports = {}, bin = {} }) {
  const files = [...Object.values(exports).map((one) => one.default ?? one), ...Object.values(bin)];
  return files.filter((file) => file.endsWith('.js')).map((file) => /^\.\/dist\/(.+)\.js$/.exec(file)[1]);
}

/** Bundles the compiled entries and their declarations. Returns the names of the packages that they import at run time. */
async function bundle(folder, entries, to) {
  // Bootstrap installs these packages, so the import must follow it.
  const [{ rolldown }, { dts }] = await Promise.all([import('rolldown'), import('rolldown-plugin-dts')]);
  const external = (id) => !/^[./]/.test(id) && !OWN_PACKAGE.test(id);
  const inputs = (ending) =>
    Object.fromEntries(entries.map((name) => [name, join(root, folder, 'dist', `${name}${ending}`)]));
  const write = async (input, plugins) => {
    // The modules of this repository have no side effects at import, so unused modules are omitted with all their imports.
    const treeshake = { moduleSideEffects: false };
    const bundled = await rolldown({ input, plugins, external, treeshake, platform: 'node', cwd: root });
    const { output } = await bundled.write({ dir: to, format: 'esm', chunkFileNames: 'chunks/[name].js' });
    await bundled.close();
    return output;
  };
  const code = await write(inputs('.js'), []);
  await write(inputs('.d.ts'), [dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false })]);
  const imports = code.flatMap((chunk) => findImports(chunk.code ?? ''));
  return [...new Set(imports.filter((id) => external(id) && !isBuiltin(id)).map(packageName))].sort();
}

/** Returns the imports in the written code. The list that rolldown returns for a chunk also contains imports that it removed as unused. */
function findImports(code) {
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
 * Returns the package.json to publish: with the version of the repository, and for each import the tested version or a later
 * compatible one. Optional imports are declared in `peerDependencies` of the package itself.
 */
function createPublishedManifest(manifest, imported) {
  const rootManifest = readManifest('.');
  const { name, description, keywords, type, exports, bin, peerDependencies, peerDependenciesMeta } =
    manifest;
  const dependencies = Object.fromEntries(
    imported
      .filter((one) => peerDependencies?.[one] === undefined)
      .map((one) => [one, `^${findVersion(manifest, one)}`]),
  );
  const { license, repository, homepage, bugs, engines } = rootManifest;
  const metadata = {
    name,
    version: rootManifest.version,
    description,
    keywords,
    license,
    repository,
    homepage,
    bugs,
  };
  const published = {
    ...metadata,
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
  return JSON.parse(JSON.stringify(published));
}

function withoutSources(exports) {
  return Object.fromEntries(
    Object.entries(exports).map(([path, { source: _, ...conditions }]) => [path, conditions]),
  );
}

/** Returns the version that the package names, or that of the bundled package of this repository that names it. */
function findVersion({ dependencies = {} }, dependency) {
  if (dependencies[dependency] !== undefined) return dependencies[dependency];
  const bundled = allPackages().filter(({ manifest }) => dependencies[manifest.name] !== undefined);
  return bundled
    .map(({ manifest }) => findVersion(manifest, dependency))
    .find((version) => version !== undefined);
}
