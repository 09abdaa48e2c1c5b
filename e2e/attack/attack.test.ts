import { expect, test } from '@jest/globals';
import { ATTACKS } from './main.ts';

/** ATTACK_SEED repeats the requests of an earlier run, and ATTACK_MINUTES sets the duration. npm run attack sets both. */
const seed = Number(process.env.ATTACK_SEED ?? Date.now() % 1_000_000);
const minutes = process.env.ATTACK_MINUTES === undefined ? null : Number(process.env.ATTACK_MINUTES);
const only = process.env.ATTACK_ONLY ?? '';
const MINUTE_MS = 60_000;
/** Ends an attack that hangs. */
const MARGIN_MS = 600_000;

const chosen = ATTACKS.filter(({ name }) => name.includes(only));
const shareMs = minutes === null ? 0 : (minutes * MINUTE_MS) / chosen.length;

function log(text: string): void {
  process.stderr.write(`${text}\n`);
}

test.each(chosen)(
  'the attack "$name" finds no violation',
  async ({ name, run }) => {
    log(`attack: ${name}, seed ${seed}`);
    const endsAtMs = minutes === null ? null : Date.now() + shareMs;
    const { table, problems } = await run({ seed, endsAtMs, isSmall: minutes === null, log });
    if (minutes !== null || problems.length > 0) log(`\nattack: ${name}, seed ${seed}\n${table}`);
    expect(problems).toEqual([]);
  },
  shareMs + MARGIN_MS,
);
