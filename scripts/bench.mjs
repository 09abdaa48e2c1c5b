// npm run bench: measures the real services on this machine. npm run bench -- --help says how.
import { bootstrap } from './bootstrap.mjs';

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
}

await bootstrap({ signal: stopping.signal });
const { bench, parseOptions, UsageError, USAGE } = await import('../bench/dist/main.js');
const args = process.argv.slice(2);
try {
  if (args.includes('--help')) process.stdout.write(`${USAGE}\n`);
  else process.exitCode = await bench(parseOptions(args), stopping.signal);
} catch (error) {
  const text = error instanceof UsageError ? `${error.message}\n\n${USAGE}` : error.stack;
  process.stderr.write(`\n${stopping.signal.aborted ? stopping.signal.reason.message : text}\n`);
  process.exitCode = error instanceof UsageError ? 2 : stopping.signal.aborted ? 130 : 1;
}
