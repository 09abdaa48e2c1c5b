// npm run test:long: the tests in *.long.test.ts, which inject faults for minutes, take all pictures or prove the simulator.
import { runSuite } from './test/run/suite.mjs';

await runSuite({ tests: 'long', args: process.argv.slice(2) });
