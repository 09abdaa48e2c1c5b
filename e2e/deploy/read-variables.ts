import { readSettings as readDispatcher } from '../../services/dispatcher/src/settings.ts';
import { readSettings as readManagement } from '../../services/management/src/settings.ts';
import { readSettings as readMigrate } from '../../services/migrate/src/settings.ts';

const FILE_SUFFIX = '_FILE';

/** Maps each service to its variables, which are recorded while it reads its environment. */
export const readVariables: Record<string, ReadonlySet<string>> = {
  management: recordVariables(readManagement),
  dispatcher: recordVariables(readDispatcher),
  migrate: recordVariables(readMigrate),
};

function recordVariables(read: (source: NodeJS.ProcessEnv) => unknown): Set<string> {
  const requested = new Set<string>();
  const environment = new Proxy<NodeJS.ProcessEnv>(
    {},
    {
      get(_, name) {
        // A service reads each variable by its name, and as the path of a file.
        if (typeof name === 'string' && name.endsWith(FILE_SUFFIX))
          requested.add(name.slice(0, -FILE_SUFFIX.length));
        return undefined;
      },
    },
  );
  try {
    read(environment);
  } catch {
    // The settings are incomplete, so reading them fails.
  }
  return requested;
}

/** Returns the variable that a name in a manifest sets: `DATABASE_URL_FILE` sets `DATABASE_URL`. */
export function findVariable(name: string, variableNames: ReadonlySet<string>): string {
  const stem = name.endsWith(FILE_SUFFIX) ? name.slice(0, -FILE_SUFFIX.length) : name;
  return variableNames.has(stem) ? stem : name;
}
