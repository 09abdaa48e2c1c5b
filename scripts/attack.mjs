// npm run attack: everything of e2e/attack for minutes.
import { readArguments, readNumber } from './arguments.mjs';
import { runWithTestServers } from './test-servers.mjs';

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
readNumber('--minutes', values.minutes);
if (values.seed !== undefined) readNumber('--seed', values.seed, { min: 0, isWhole: true });
await runWithTestServers({
  name: 'attack',
  args: ['e2e/attack/attack', '--runInBand'],
  environment: {
    ATTACK_MINUTES: values.minutes,
    ...(values.seed === undefined ? {} : { ATTACK_SEED: values.seed }),
    ...(values.only === undefined ? {} : { ATTACK_ONLY: values.only }),
  },
});
