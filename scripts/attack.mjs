// npm run attack: everything of e2e/attack for minutes.
import { readArguments, readNumber } from './arguments.mjs';
import { recordTests } from './prove/proofs.mjs';
import { runWithTestServers } from './test-servers.mjs';

/** Shorter runs are for development: they do not write the row of the proof. */
const PROOF_MINUTES_MIN = 10;
const USAGE = `npm run attack [-- --minutes <n> --seed <n> --only <text>]

--minutes  in all; 10 when omitted
--seed     brings the requests of a run back
--only     the attacks whose name holds it`;

const { values } = readArguments(USAGE, {
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
const minutes = readNumber('--minutes', values.minutes);
if (values.seed !== undefined) readNumber('--seed', values.seed, { min: 0, isWhole: true });
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
