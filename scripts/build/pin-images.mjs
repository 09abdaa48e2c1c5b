// Pins the images of other publishers, which the Dockerfile, compose and the development overlay use, to digests:
// node scripts/build/pin-images.mjs          resolves the digest of each tag and writes it into the files
// node scripts/build/pin-images.mjs --check  lists the images without a digest; the release workflow requires that there is none
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments, usage } from '../shared/arguments.mjs';
import { root } from '../shared/workspace.mjs';

const FILES = [
  'Dockerfile',
  'docker-compose.yml',
  'k8s/overlays/development/postgres.yaml',
  'k8s/overlays/development/redis.yaml',
];
/** An image with a tag, which images of this repository and stages of the Dockerfile do not have. */
const IMAGE = /(?<=^(?:FROM| *image:) )([\w./-]+:[\w.-]+)(@sha256:[0-9a-f]{64})?/gm;

const USAGE = usage({
  call: 'node scripts/build/pin-images.mjs [--check]',
  purpose: 'pins the images of other publishers to the digests of their tags, before a release',
  duration: 'seconds',
  prerequisites: 'docker with buildx, and the registries of the images',
});
const { values } = readArguments(USAGE, { options: { check: { type: 'boolean' } } });

/** Returns the digest of a tag's index, which covers all platforms; null if it cannot be resolved. */
function resolveDigest(image) {
  const inspect = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}'];
  const { status, stdout } = spawnSync(process.env.DOCKER ?? 'docker', inspect, { encoding: 'utf8' });
  const digest = stdout?.trim() ?? '';
  return status === 0 && /^sha256:[0-9a-f]{64}$/.test(digest) ? digest : null;
}

const unpinned = new Set();
const digests = new Map();
for (const file of FILES) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  const pinned = text.replace(IMAGE, (reference, image, digest) => {
    if (values.check) {
      if (digest === undefined) unpinned.add(`${file}: ${image}`);
      return reference;
    }
    if (!digests.has(image)) digests.set(image, resolveDigest(image));
    const resolved = digests.get(image);
    if (resolved === null) unpinned.add(`${file}: ${image}`);
    return resolved === null ? reference : `${image}@${resolved}`;
  });
  if (pinned !== text) writeFileSync(path, pinned);
}
for (const line of unpinned) process.stderr.write(`no digest: ${line}\n`);
process.exitCode = unpinned.size === 0 ? 0 : 1;
