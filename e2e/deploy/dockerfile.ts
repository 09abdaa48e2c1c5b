import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkout } from './manifests.ts';

export const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8');

/** Maps each stage to its text. `npm run prove -- image` builds it. */
export const stages = new Map(
  dockerfile.split(/^(?=FROM )/m).flatMap((text) => {
    const name = /^FROM \S+ AS (\S+)$/m.exec(text)?.[1];
    return name === undefined ? [] : [[name, text] as const];
  }),
);
