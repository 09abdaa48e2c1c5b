import { test } from '@jest/globals';
import type { BackendName } from './servers.ts';
import { backends, expectNothingLost, FAULT_TIMEOUT_MS, say, seed, strikeAll } from './strike-all.ts';
import { ledgerTable } from './table.ts';

const CRASH = 'all at once';
const STORE = 'PostgreSQL takes no writes';
const NEIGHBOUR = "another account's path on the host hangs";
const POISON =
  "another account's texts are what stores reject, then PostgreSQL, Redis and a dispatcher are killed";

/** One fault of each kind. A crash strikes both queues; chaos.long.test.ts has the other pairs and faults. */
const FAULTS_OF: Record<BackendName, string[]> =
  backends.length === 1
    ? { PostgreSQL: [CRASH, STORE, NEIGHBOUR, POISON], Redis: [] }
    : { PostgreSQL: [CRASH, STORE], Redis: [CRASH, NEIGHBOUR, POISON] };

// Both back ends wait at the same time: most of a fault is waiting.
test(
  'nothing is lost by a fault of each kind',
  async () => {
    const rows = (await Promise.all(backends.map((name) => strikeAll(name, FAULTS_OF[name])))).flat();
    say(`chaos, seed ${seed}\n${ledgerTable(rows)}`);
    for (const row of rows) expectNothingLost(row);
  },
  FAULT_TIMEOUT_MS,
);
