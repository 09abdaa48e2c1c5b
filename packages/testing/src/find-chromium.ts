import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Why there is no browser, for whoever reads what was skipped. */
export const NO_CHROMIUM = `no ${NAMES.slice(0, -1).join(', ')} or ${NAMES.at(-1)} is on the path and CHROMIUM_PATH is not set`;

/** The browser of the browser tests: CHROMIUM_PATH when it is set, else one on the path; null when there is none. */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | null {
  if (environment.CHROMIUM_PATH) return environment.CHROMIUM_PATH;
  const folders = (environment.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const name of NAMES) {
    const found = folders.map((folder) => join(folder, name)).find(isExecutable);
    if (found !== undefined) return found;
  }
  return null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
