// npm run test:busy: as npm test, arguments too, with a busy loop beside it for each core. What trusts the clock shows.
import { startBusyLoops } from './busy-loops.mjs';

const loops = startBusyLoops();
process.stdout.write(`beside the tests: ${loops.length} busy loops\n`);
await import('./test.mjs');
