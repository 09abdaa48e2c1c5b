import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates a folder for one test, with a space in its path. mkdtemp sets mode 700; 711 lets another account pass. */
export async function temporaryFolder(mode = 0o711): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'runhook embedded ')));
  await chmod(path, mode);
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
