import { beforeEach, describe, expect, test } from '@jest/globals';
import { InHand } from '../../src/policy/in-hand.ts';

describe('events in hand', () => {
  let nowMs: number;
  let turns: (() => void)[];
  let entered: number[];
  beforeEach(() => {
    nowMs = 0;
    turns = [];
    entered = [];
  });
  const open = (max: number) =>
    new InHand({ max, always: 64, nowMs: () => nowMs, afterTurn: (run) => void turns.push(run) });

  /** Brings events, of whose numbers `entered` has those that are in hand. */
  function bring(inHand: InHand, count: number, isBehind = false, first = 0): void {
    for (let number = first; number < first + count; number += 1) {
      const entering = inHand.acquire(isBehind);
      if (entering === undefined) entered.push(number);
      else void entering.then(() => entered.push(number));
    }
  }

  /** A turn of the event loop that takes so long. */
  async function turn(tookMs: number): Promise<void> {
    nowMs += tookMs;
    for (const run of turns.splice(0)) run();
    await Promise.resolve();
  }

  test('are 64 at least, and more with each prompt turn, up to the most', async () => {
    const inHand = open(100);
    bring(inHand, 200);
    expect(entered).toHaveLength(64);
    await turn(1);
    expect(entered).toHaveLength(80);
    await turn(1);
    await turn(1);
    expect(entered).toHaveLength(100);
    // At the most nothing is tried, turn by turn, until one ends.
    expect(turns).toHaveLength(0);
    inHand.release();
    await turn(1);
    expect(entered).toEqual(Array.from({ length: 101 }, (_, number) => number));
  });

  test('are no more than 64 while turns take long, and one goes for each that ends', async () => {
    const inHand = open(384);
    bring(inHand, 200);
    for (let count = 0; count < 5; count += 1) await turn(20);
    expect(entered).toHaveLength(64);
    for (let count = 0; count < 10; count += 1) inHand.release();
    await turn(20);
    expect(entered).toHaveLength(74);
  });

  test('that are more than 64 are fewer again once turns take long', async () => {
    const inHand = open(384);
    bring(inHand, 200);
    for (let count = 0; count < 3; count += 1) await turn(1);
    expect(entered).toHaveLength(112);
    for (let count = 0; count < 60; count += 1) inHand.release();
    await turn(20);
    // 48 of the 60 were beside the 64.
    expect(entered).toHaveLength(112 + 12);
  });

  test('of the rest of a burst come after all others', async () => {
    const inHand = open(64);
    bring(inHand, 64);
    bring(inHand, 1, true, 1_000);
    bring(inHand, 1, false, 2_000);
    inHand.release();
    inHand.release();
    await turn(1);
    expect(entered.slice(64)).toEqual([2_000, 1_000]);
  });

  test('tell once when they are not crowded any more', async () => {
    const inHand = open(64);
    let told = 0;
    inHand.onThin = () => void told++;
    bring(inHand, 127);
    expect(inHand.isCrowded).toBe(false);
    bring(inHand, 2, false, 127);
    expect(inHand.isCrowded).toBe(true);
    for (let count = 0; count < 10; count += 1) inHand.release();
    expect(inHand.isCrowded).toBe(false);
    expect(told).toBe(1);
  });

  test('are no more than a small setting says', async () => {
    const inHand = open(3);
    bring(inHand, 5);
    await turn(1);
    expect(entered).toEqual([0, 1, 2]);
    inHand.release();
    await turn(1);
    expect(entered).toEqual([0, 1, 2, 3]);
  });
});
