import { readFileSync } from 'node:fs';

const FILE_SUFFIX = '_FILE';
const FILE_BYTES_MAX = 65_536;

export interface FileVariables {
  /** The environment with the text of each file under the name of its variable. */
  environment: NodeJS.ProcessEnv;
  /** By name of the variable. What is wrong with its file; never what stands in it, nor its path. */
  problems: Record<string, string>;
}

/**
 * Every variable `NAME` may come from a file instead, named by `NAME_FILE`, the way container platforms hand over
 * secrets: it shows in no process list, no `docker inspect` and no dump of the environment. Line ends at the end of
 * the file do not count.
 */
export function readFileVariables(names: readonly string[], source: NodeJS.ProcessEnv): FileVariables {
  const environment = { ...source };
  const problems: Record<string, string> = {};
  for (const name of names) {
    const path = source[name + FILE_SUFFIX];
    if (!path) continue;
    if (source[name]) {
      problems[name] = `${name} and ${name}${FILE_SUFFIX} are both set; set one of them`;
      continue;
    }
    try {
      environment[name] = textOf(path);
    } catch (error) {
      problems[name] = `${name}${FILE_SUFFIX}: ${describe(error)}`;
    }
  }
  return { environment, problems };
}

class UnusableFileError extends Error {}

function textOf(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new UnusableFileError(`the file is larger than ${FILE_BYTES_MAX} bytes`);
  }
  const text = bytes.toString('utf8').replace(/[\r\n]+$/, '');
  if (text === '') throw new UnusableFileError('the file is empty');
  return text;
}

function describe(error: unknown): string {
  if (error instanceof UnusableFileError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return `the file cannot be read${code === undefined ? '' : ` (${code})`}`;
}
