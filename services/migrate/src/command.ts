import { migrationStates, resolveMigration } from '@runhook/database/migrate';
import type { MigrateSettings } from './migrate-all.ts';

const USAGE = `Without a command: applies what is missing.
  status                          each migration, and what the database said of one that failed
  resolve --rolled-back <name>    nothing of it is in the database: the next run tries it again
  resolve --applied <name>        all of it is in the database
`;

/** Runs a command for a migration that did not end. Returns the exit code; `status` returns 1 if an action is needed. */
export async function runCommand(
  { databaseUrl }: Pick<MigrateSettings, 'databaseUrl'>,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const [command, became, name] = words;
  if (command === 'status' && words.length === 1) return await tellStatus(databaseUrl, write);
  if (command === 'resolve' && name !== undefined && (became === '--applied' || became === '--rolled-back')) {
    await resolveMigration(databaseUrl, name, became === '--applied' ? 'applied' : 'rolled back');
    return await tellStatus(databaseUrl, write);
  }
  write(USAGE);
  return 2;
}

async function tellStatus(databaseUrl: string, write: (text: string) => void): Promise<number> {
  const states = await migrationStates(databaseUrl);
  for (const { name, state, at, words } of states) {
    write(`${name}  ${state}${at === null ? '' : `  ${at.toISOString()}`}\n`);
    if (words) write(`    ${words.replaceAll('\n', '\n    ')}\n`);
  }
  return states.every(({ state }) => state !== 'missing' && state !== 'unresolved') ? 0 : 1;
}
