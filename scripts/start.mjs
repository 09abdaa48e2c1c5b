// npm start: makes the checkout ready, then hands over to what was just built.
import { readArguments } from './arguments.mjs';
import { bootstrap } from './bootstrap.mjs';
import { createTerminal, watchStopSignals } from './terminal.mjs';

const USAGE = `npm start [-- --once]

--once  leaves after the demonstration`;

const { once: isOnce = false } = readArguments(USAGE, { options: { once: { type: 'boolean' } } }).values;

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
process.exit(await start({ terminal, stopping, isOnce }));
