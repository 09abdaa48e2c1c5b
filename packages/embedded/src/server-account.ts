import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { ServerFailed } from './server-failed.ts';

/** The account a server runs as. */
export interface Account {
  uid: number;
  gid: number;
  name: string;
}

const CANDIDATES = ['postgres', 'nobody'];

/**
 * PostgreSQL refuses to run as root: then it runs as the owner of the data that is there already, else as an account
 * the system has anyway. None is created, so that nothing is left behind on the machine. Null: as we are.
 */
export function serverAccount(dataDir: string): Account | null {
  if (process.getuid?.() !== 0) return null;
  const owner = ownerOf(join(dataDir, 'data'));
  if (owner !== null && owner.uid !== 0) return owner;
  for (const name of CANDIDATES) {
    const uid = idOf('-u', name);
    const gid = idOf('-g', name);
    if (uid !== null && gid !== null && uid !== 0) return { uid, gid, name };
  }
  throw new ServerFailed(
    'no-account',
    `PostgreSQL does not run as root, and this system has none of the accounts ${CANDIDATES.join(', ')}: run as another user`,
  );
}

function ownerOf(folder: string): Account | null {
  const stats = statSync(folder, { throwIfNoEntry: false });
  return stats === undefined ? null : { uid: stats.uid, gid: stats.gid, name: `uid ${stats.uid}` };
}

function idOf(flag: '-u' | '-g', name: string): number | null {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' });
  const id = Number(stdout?.trim());
  return status === 0 && Number.isSafeInteger(id) && id >= 0 ? id : null;
}
