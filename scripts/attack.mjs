// npm run attack: runs the tests of e2e/attack for minutes.

import { recordTests } from './prove/proofs.mjs';
import { readArguments, readNumber, usage } from './shared/arguments.mjs';
import { runWithTestServers } from './test/run/servers.mjs';

/** Minimum duration of a proof: shorter runs are for development and do not write the row of the proof. */
const PROOF_MINUTES_MIN = 10;
const USAGE = usage({
  call: 'npm run attack [-- --minutes <n> --seed <n> --only <text>]',
  purpose:
    'calls every route with good and bad requests, serves hostile endpoints, floods, and looks for leaks; a proof (docs/proofs.md)',
  duration: '10 minutes; results so far are printed at once',
  prerequisites: 'none; the queue is on Redis if redis-server is installed',
  details: `--minutes  total duration; 10 when omitted
--seed     repeats the requests of a run
--only     runs only attacks whose name contains the text`,
});

const { values } = readArguments(USAGE, {
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
const minutes = readNumber('--minutes', values.minutes);
if (values.seed !== undefined) readNumber('--seed', values.seed, { min: 0, isInteger: true });
const results = await runWithTestServers({
  name: 'attack',
  args: ['e2e/attack/attack', '--runInBand'],
  environment: {
    ATTACK_MINUTES: values.minutes,
    ...(values.seed === undefined ? {} : { ATTACK_SEED: values.seed }),
    ...(values.only === undefined ? {} : { ATTACK_ONLY: values.only }),
  },
});
if (values.only === undefined && minutes >= PROOF_MINUTES_MIN) {
  const figure = `${minutes} minutes`;
  recordTests('attack', { ...results, figures: [{ proof: 'attack', figure }] });
}
