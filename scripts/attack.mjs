// npm run attack: everything of e2e/attack for minutes. --minutes <number> in all, 10 when omitted; --seed <number> brings
// the requests of a run back; --only <text> takes the attacks whose name holds it.
import { parseArgs } from 'node:util';
import { runWithTestServers } from './test-servers.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
await runWithTestServers({
  name: 'attack',
  args: ['e2e/attack/attack.test.ts', '--runInBand'],
  environment: {
    ATTACK_MINUTES: values.minutes,
    ...(values.seed === undefined ? {} : { ATTACK_SEED: values.seed }),
    ...(values.only === undefined ? {} : { ATTACK_ONLY: values.only }),
  },
});
