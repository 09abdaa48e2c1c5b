// npm start: makes the checkout ready, then hands over to what was just built.
import { bootstrap } from './bootstrap.mjs';
import { createTerminal, watchStopSignals } from './terminal.mjs';

const args = process.argv.slice(2);
if (args.some((arg) => arg !== '--once')) {
  process.stderr.write('usage: npm start [-- --once]\n\n--once  leave after the demonstration\n');
  process.exit(2);
}

const terminal = createTerminal();
const stopping = watchStopSignals();

await bootstrap({
  step: terminal.step,
  signal: stopping.signal,
  onFailure(error) {
    terminal.error(stopping.signal.aborted ? 'stopped before anything was started' : error.message);
    process.exit(stopping.signal.aborted ? 130 : 1);
  },
});
const { start } = await import('./dist/main.js');
process.exit(await start({ terminal, stopping, isOnce: args.includes('--once') }));
