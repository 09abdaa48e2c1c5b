import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/** Ways of resolution that a package of ES modules need not support: require(), and Node before 12. */
const NOT_FOR_MODULES = new Set(['node10', 'node16-cjs']);

/**
 * Returns the problems of a package that is to be published, as sentences: those of its package.json, and of how compilers and Node
 * resolve its modules and types.
 *
 * @param {string} folder the packed folder
 * @param {string} tarball
 * @returns {Promise<string[]>}
 */
export async function findPackageProblems(folder, tarball) {
  const manifest = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const packed = new Uint8Array(readFileSync(tarball));
  // publint reads the tarball, because packing the folder again would start npm again.
  const { messages } = await publint({ strict: true, pack: { tarball: packed.buffer } });
  const warnings = messages.map(
    (message) => formatMessage(message, manifest, { color: false }) ?? message.code,
  );
  // A package that has only a program has no types.
  if (manifest.exports?.['.'] === undefined) return warnings;
  const { types, problems = [] } = await checkPackage(createPackageFromTarballData(packed));
  if (types === false) return [...warnings, 'the package has no types'];
  const found = problems.filter(({ resolutionKind }) => !NOT_FOR_MODULES.has(resolutionKind));
  return [...warnings, ...found.map((problem) => JSON.stringify(problem))];
}
