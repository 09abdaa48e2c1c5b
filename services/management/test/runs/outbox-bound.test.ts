import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { READ_OUTBOX } from '../../src/runs/outbox.ts';
import { OutboxBound } from '../../src/runs/outbox-bound.ts';
import { openRelayBench, type RelayBench } from './relay-bench.ts';

describe('the bound', () => {
  const turn = (after: bigint, first: bigint, last: bigint, isAll = true) => {
    return { after, moved: { first, last }, isAll };
  };
  const empty = (after: bigint) => ({ after, moved: null, isAll: true });
  const edges = (oldestRunning: bigint, next: bigint) => ({ oldestRunning, next });

  test('follows when all transactions that might bring a smaller sequence have ended, and a read has seen them', () => {
    const bound = new OutboxBound(0);
    expect(bound.begin(edges(100n, 105n), 0)).toBe(0n);
    bound.end(turn(0n, 1n, 20n), 0);
    // 103 runs still; it may have begun before the read of 1 to 20.
    for (let turns = 0; turns < 3; turns++) {
      expect(bound.begin(edges(103n, 106n), 0)).toBe(0n);
      bound.end(empty(0n), 0);
    }
    // It has ended, and only this read sees what it left.
    expect(bound.begin(edges(106n, 107n), 0)).toBe(0n);
    bound.end(turn(0n, 10n, 10n), 0);
    expect(bound.value).toBe(20n);
    expect(bound.begin(edges(107n, 107n), 0)).toBe(20n);
  });

  test('stays while a full read has not come so far', () => {
    const bound = new OutboxBound(0);
    bound.begin(edges(1n, 1n), 0);
    bound.end(turn(0n, 500n, 999n), 0);
    bound.begin(edges(2n, 2n), 0);
    bound.end(turn(0n, 1n, 400n, false), 0);
    bound.begin(edges(3n, 3n), 0);
    bound.end(turn(0n, 401n, 499n, false), 0);
    expect(bound.value).toBe(0n);
    bound.begin(edges(4n, 4n), 0);
    bound.end(empty(0n), 0);
    expect(bound.value).toBe(999n);
  });

  test('does not wait for a long transaction, looks from the start twice a minute, and begins anew for what it finds', () => {
    const bound = new OutboxBound(0);
    const stuck = edges(5n, 900n);
    bound.begin(stuck, 0);
    bound.end(turn(0n, 1n, 20n), 0);
    bound.begin(stuck, 59_000);
    bound.end(empty(0n), 59_000);
    bound.begin(stuck, 60_000);
    bound.end(empty(0n), 60_000);
    expect(bound.value).toBe(20n);
    expect(bound.begin(stuck, 89_999)).toBe(20n);
    expect(bound.begin(stuck, 90_000)).toBe(0n);
    bound.end(turn(0n, 7n, 7n), 90_000);
    expect(bound.value).toBe(0n);
  });
});

describe('the relay', () => {
  let bench: RelayBench;
  beforeEach(async () => {
    bench = await openRelayBench();
  });
  afterEach(() => bench.close());

  /** Blocks that the relay's read touches from there. */
  async function blocksRead(after: bigint): Promise<number> {
    const { rows } = await bench.database.pool.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${READ_OUTBOX.replace('$1', String(after)).replace('$2', '500')}`,
    );
    const plan = rows[0]['QUERY PLAN'][0].Plan;
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  }

  test('reads as little under an old snapshot as without one', async () => {
    const { pool } = bench.database;
    const reader = await pool.connect();
    try {
      await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox');
      await pool.query(
        `INSERT INTO outbox (day, event_id) SELECT current_date, 'wev_x' FROM generate_series(1, 20000)`,
      );
      const relay = bench.startRelay({ add: async () => {} });
      await eventually(async () => {
        relay.wake();
        expect(relay.emptyUpTo).toBe(20_000n);
      });
      expect(await bench.outboxCount()).toBe(0);
      expect(await blocksRead(0n)).toBeGreaterThan(100);
      expect(await blocksRead(relay.emptyUpTo)).toBeLessThan(10);
    } finally {
      reader.release(true);
    }
  });

  test('sends at once what commits later than what was drawn after it', async () => {
    const handed: string[] = [];
    const relay = bench.startRelay({
      add: async (events) => void handed.push(...events.map(({ eventId }) => eventId)),
    });
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let drawn = () => {};
    const hasDrawn = new Promise<void>((resolve) => {
      drawn = resolve;
    });
    const late = bench.commit(1, () => {
      drawn();
      return released;
    });
    await hasDrawn;
    for (let times = 1; times <= 5; times++) {
      await bench.commit(3);
      relay.wake();
      await eventually(() => expect(handed).toHaveLength(3 * times));
    }
    expect(relay.emptyUpTo).toBe(0n);
    release();
    const [event] = await late;
    relay.wake();
    await eventually(() => expect(handed.at(-1)).toBe(event?.eventId));
    await eventually(() => {
      relay.wake();
      expect(relay.emptyUpTo).toBe(16n);
    });
    expect(handed).toHaveLength(16);
  });

  test('finds by its look from the start what appears below the bound', async () => {
    let nowMs = 0;
    const handed: string[] = [];
    const relay = bench.startRelay(
      { add: async (events) => void handed.push(...events.map(({ eventId }) => eventId)) },
      { nowMs: () => nowMs, pollIntervalMs: 20 },
    );
    await bench.commit(10);
    await eventually(() => expect(relay.emptyUpTo).toBe(10n));
    // As after a restore to an earlier state.
    await bench.database.pool.query('ALTER SEQUENCE outbox_sequence_seq RESTART');
    const [event] = await bench.commit(1);
    nowMs = 30_000;
    await eventually(() => expect(handed.at(-1)).toBe(event?.eventId));
    await eventually(() => expect(relay.emptyUpTo).toBe(1n));
  });
});
