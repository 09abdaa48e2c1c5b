import { bootstrap } from '../build/bootstrap.mjs';
import { isHelp } from '../shared/arguments.mjs';

/**
 * Builds, runs a program of `bench/` with the arguments of the command, and sets the exit code. Ctrl-C stops the program in order.
 *
 * @param {string} help
 * @param {(args: string[], signal: AbortSignal) => Promise<number>} measure resolves with the exit code
 */
export async function runMeasurement(help, measure) {
  const args = process.argv.slice(2);
  if (args.some(isHelp)) {
    process.stdout.write(`usage: ${help}\n`);
    return;
  }
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
  }
  process.on('disconnect', () => stopping.abort(new Error('stopped by the end of npm run bench')));
  process.channel?.unref();
  await bootstrap({ signal: stopping.signal });
  const { UsageError } = await import('../../bench/dist/main.js');
  try {
    process.exitCode = await measure(args, stopping.signal);
  } catch (error) {
    const isMisused = error instanceof UsageError;
    const text = isMisused ? `${error.message}\n\nusage: ${help}` : error.stack;
    process.stderr.write(`\n${stopping.signal.aborted ? stopping.signal.reason.message : text}\n`);
    process.exitCode = isMisused ? 2 : stopping.signal.aborted ? 130 : 1;
  }
}
