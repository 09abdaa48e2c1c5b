import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

/*
 * Most of what a request allocates is dead when it ends, and costs nothing then: a collection of the young copies what lives. If
 * something keeps it until the next full collection, everything is copied twice (docs/adr/0050-nothing-outlives-its-request.md).
 */

/** Of what is allocated: 0.25 was promoted while requests were kept, 0.02 is now. */
const PROMOTED_SHARE_MAX = 0.12;

const FLAGS = ['--trace-gc-nvp', '--max-semi-space-size=16'];

test('collections of the young find next to nothing of requests that have ended', () => {
  const program = fileURLToPath(new URL('./many-posts.mjs', import.meta.url));
  const traced = execFileSync(process.execPath, [...FLAGS, program], { encoding: 'utf8' });
  const collections = traced.split('\n').filter((line) => line.includes(' gc=s '));
  const sum = (field: string) =>
    collections.reduce((bytes, line) => bytes + Number(line.split(` ${field}=`)[1]?.split(' ')[0]), 0);
  expect(collections.length).toBeGreaterThan(10);
  expect(sum('promoted') / sum('allocated')).toBeLessThan(PROMOTED_SHARE_MAX);
});
