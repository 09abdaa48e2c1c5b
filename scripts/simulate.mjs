// npm run simulate: what Runhook does at given rates, on a virtual clock. npm run simulate -- --help says how.
import { bootstrap } from './bootstrap.mjs';
import { recordProof } from './prove/proofs.mjs';

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
}

await bootstrap({ signal: stopping.signal });
const { simulate, UsageError, USAGE } = await import('../bench/dist/simulate/main.js');
const args = process.argv.slice(2);
try {
  if (args.includes('--help')) process.stdout.write(`${USAGE}\n`);
  else {
    const figures = [];
    process.exitCode = await simulate(args, stopping.signal, (figure) => figures.push(figure));
    if (process.exitCode === 0 && args.includes('--against-bench')) recordProof('simulation', figures);
  }
} catch (error) {
  const text = error instanceof UsageError ? `${error.message}\n\n${USAGE}` : error.stack;
  process.stderr.write(`\n${stopping.signal.aborted ? stopping.signal.reason.message : text}\n`);
  process.exitCode = error instanceof UsageError ? 2 : stopping.signal.aborted ? 130 : 1;
}
