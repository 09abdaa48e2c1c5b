import { readSettings as readDispatcher } from '../../services/dispatcher/src/settings.ts';
import { readSettings as readManagement } from '../../services/management/src/settings.ts';
import { readSettings as readMigrate } from '../../services/migrate/src/migrate-all.ts';

const FILE_SUFFIX = '_FILE';

/** The variables of each service, by watching which ones it asks its environment for. */
export const variablesOf: Record<string, ReadonlySet<string>> = {
  management: variablesAskedFor(readManagement),
  dispatcher: variablesAskedFor(readDispatcher),
  migrate: variablesAskedFor(readMigrate),
};

function variablesAskedFor(read: (source: NodeJS.ProcessEnv) => unknown): Set<string> {
  const asked = new Set<string>();
  const environment = new Proxy<NodeJS.ProcessEnv>(
    {},
    {
      get(_, name) {
        // Each variable is asked for under its own name and as the name of a file.
        if (typeof name === 'string' && name.endsWith(FILE_SUFFIX))
          asked.add(name.slice(0, -FILE_SUFFIX.length));
        return undefined;
      },
    },
  );
  try {
    read(environment);
  } catch {
    // What is required is missing, of course.
  }
  return asked;
}

/** The variable that a name in a manifest stands for: `DATABASE_URL_FILE` hands over `DATABASE_URL`. */
export function variableBehind(name: string, known: ReadonlySet<string>): string {
  const stem = name.endsWith(FILE_SUFFIX) ? name.slice(0, -FILE_SUFFIX.length) : name;
  return known.has(stem) ? stem : name;
}
