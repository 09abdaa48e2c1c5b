import { expect, test } from '@jest/globals';
import { fuzz } from './fuzz/fuzz.ts';

/** ATTACK_SEED repeats the requests of an earlier run. */
const seed = Number(process.env.ATTACK_SEED ?? Date.now() % 1_000_000);
const log = (text: string) => void process.stderr.write(`${text}\n`);

// attack.test.ts sends a third of these requests.
test('no request of a whole round of random valid and invalid requests gets an unexpected response', async () => {
  log(`attack: ${fuzz.name}, seed ${seed}`);
  const { problems } = await fuzz.run({ seed, endsAtMs: null, log });
  expect(problems).toEqual([]);
}, 600_000);
