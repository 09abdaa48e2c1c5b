import { test } from '@jest/globals';
import { backends, expectNothingLost, FAULT_TIMEOUT_MS, print, runFaults, seed } from './run-faults.ts';
import { formatLedgerTable } from './table.ts';

/** One fault of each kind: a crash, a failing store, another account, and text that stores reject. */
const FAULTS = [
  'all at once',
  'PostgreSQL rejects writes',
  "another account's endpoint on the same host hangs",
  'another account sends text that stores reject, then PostgreSQL, Redis and a dispatcher are killed',
];

// On the last back end, Redis, the queue and the record fail separately. chaos.long.test.ts has both queues and further faults.
test.each(backends.slice(-1))(
  'no event is lost by crashes, rejected writes, a hanging endpoint or text that stores reject, with the queue on %s',
  async (backend) => {
    const rows = await runFaults(backend, FAULTS);
    print(`chaos, seed ${seed}\n${formatLedgerTable(rows)}`);
    for (const row of rows) expectNothingLost(row);
  },
  FAULT_TIMEOUT_MS,
);
