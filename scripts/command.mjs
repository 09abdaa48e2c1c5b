import { spawnGroup } from './process-group.mjs';

/** A command that ended badly. `output` is what it wrote, both streams in order. */
export class CommandFailed extends Error {
  constructor(command, code, output) {
    super(`${command} ended with ${code}\n\n${output.trim()}`);
    this.name = 'CommandFailed';
    this.output = output;
  }
}

/**
 * Runs a command in silence and gives its output; what went well needs no reading. An aborted `signal` ends it
 * with all that it started.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv, signal?: AbortSignal, name: string }} options `name` is for people
 * @returns {Promise<string>}
 */
export function run(file, args, { cwd, env = process.env, signal, name }) {
  return new Promise((resolve, reject) => {
    const child = spawnGroup(file, args, { cwd, env, signal, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.once('error', (error) => reject(new CommandFailed(name, error.code ?? error.message, output)));
    child.once('close', (code, killedBy) => {
      if (code === 0) resolve(output);
      else reject(new CommandFailed(name, code ?? killedBy, output));
    });
  });
}
