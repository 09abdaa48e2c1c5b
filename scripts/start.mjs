// npm start: builds the checkout, then runs the built program.

import { bootstrap } from './build/bootstrap.mjs';
import { readArguments, usage } from './shared/arguments.mjs';
import { createTerminal, watchStopSignals } from './start/terminal.mjs';

const USAGE = usage({
  call: 'npm start [-- --once]',
  purpose: 'starts everything on this machine, with a demonstration',
  duration: 'a minute at first, then seconds; runs until Ctrl-C',
  prerequisites: 'Node and npm; the first start installs packages and builds everything',
  details: '--once  exits after the demonstration',
});

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
