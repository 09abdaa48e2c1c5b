import { readMigrationStates, resolveMigration } from '@runhook/database/migrate';
import type { MigrateSettings } from './settings.ts';

const USAGE = `Without a command: applies the missing migrations.
  status                          state of each migration, and the database error of one that failed
  resolve --rolled-back <name>    marks the migration as rolled back: the next run applies it
  resolve --applied <name>        marks the migration as applied: all its changes must be in the database
`;

/** Runs `status` or `resolve`. Returns the exit code: 1 if a migration is missing or unresolved, 2 for wrong usage. */
export async function runCommand(
  { databaseUrl }: Pick<MigrateSettings, 'databaseUrl'>,
  args: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const [command, flag, name] = args;
  if (command === 'status' && args.length === 1) return await printStatus(databaseUrl, write);
  if (command === 'resolve' && name !== undefined && (flag === '--applied' || flag === '--rolled-back')) {
    await resolveMigration(databaseUrl, name, flag === '--applied' ? 'applied' : 'rolled back');
    return await printStatus(databaseUrl, write);
  }
  write(USAGE);
  return 2;
}

async function printStatus(databaseUrl: string, write: (text: string) => void): Promise<number> {
  const states = await readMigrationStates(databaseUrl);
  for (const { name, state, at, errorText } of states) {
    write(`${name}  ${state}${at === null ? '' : `  ${at.toISOString()}`}\n`);
    if (errorText) write(`    ${errorText.replaceAll('\n', '\n    ')}\n`);
  }
  return states.every(({ state }) => state !== 'missing' && state !== 'unresolved') ? 0 : 1;
}
