import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import dockerignore from '@balena/dockerignore';

/** Never part of a context, and too large to look into. */
const NOT_LOOKED_INTO = new Set(['node_modules', '.git', '.runhook', 'dist']);

/** Copies what a builder would be sent: everything that .dockerignore does not leave out. Answers the files. */
export function copyContext(checkout: string, target: string): string[] {
  const ignoreFile = join(checkout, '.dockerignore');
  const rules = dockerignore.default();
  if (existsSync(ignoreFile)) rules.add(readFileSync(ignoreFile, 'utf8'));
  const files = filesBelow(checkout, '').filter((file) => !rules.ignores(file));
  for (const file of files) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    cpSync(join(checkout, file), join(target, file));
  }
  return files;
}

function filesBelow(checkout: string, folder: string): string[] {
  return readdirSync(join(checkout, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return NOT_LOOKED_INTO.has(entry.name) ? [] : filesBelow(checkout, path);
    return entry.isFile() ? [path] : [];
  });
}
