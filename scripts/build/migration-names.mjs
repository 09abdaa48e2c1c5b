// Writes the names of the migrations into a module next to the Prisma client. Must run after `prisma generate`, which empties that folder.
import { readdirSync, writeFileSync } from 'node:fs';

const migrations = readdirSync(new URL('../../prisma/migrations/', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();
const lines = migrations.map((name) => `  '${name}',\n`).join('');
writeFileSync(
  new URL('../../packages/database/src/generated/migrations.ts', import.meta.url),
  `/** The migrations that this build was made with, oldest first. */\nexport const MIGRATION_NAMES: readonly string[] = [\n${lines}];\n`,
);
