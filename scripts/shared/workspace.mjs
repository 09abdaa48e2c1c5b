import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the folders of all packages that pnpm-workspace.yaml names, relative to the checkout. */
export function workspaceFolders() {
  const patterns = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8').matchAll(
    /^ {2}- +['"]?([^'"\s]+)['"]?\s*$/gm,
  );
  const folders = [];
  for (const [, pattern] of patterns) {
    if (!pattern.endsWith('/*')) folders.push(pattern);
    else folders.push(...listChildren(pattern.slice(0, -2)));
  }
  return folders.filter((folder) => existsSync(join(root, folder, 'package.json'))).sort();
}

function listChildren(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
}
