import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns a hash of the content and the names of these files and folders of a checkout. */
export function hashSources(checkout, sources) {
  const hash = createHash('sha256').update(process.versions.node);
  for (const path of sources.flatMap((source) => filesOf(checkout, source))) {
    const content = readFileSync(join(checkout, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Returns the files of a folder, in order, or the file itself. Installed packages are omitted, because the lockfile identifies them. */
function filesOf(checkout, path) {
  const absolute = join(checkout, path);
  if (!existsSync(absolute)) return [];
  if (/\.\w+$/.test(path)) return [path];
  return readdirSync(absolute, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(checkout.length)
        .replace(/^[\\/]/, ''),
    )
    .filter((file) => !/[\\/]node_modules[\\/]/.test(file))
    .sort();
}
