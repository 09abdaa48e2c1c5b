import type { Bench, ScenarioResult } from '../bench.ts';
import type { ScenarioName } from '../options.ts';
import { backlog } from './backlog.ts';
import { change } from './change.ts';
import { floods } from './floods.ts';
import { ingest } from './ingest.ts';
import { far, latency, postgresQueue } from './latency.ts';
import { list } from './list.ts';
import { neighbours } from './neighbours.ts';
import { parked } from './parked.ts';
import { profile } from './profile.ts';
import { rest } from './rest.ts';
import { shards } from './shards.ts';
import { fanOut, max } from './throughput.ts';

export const scenarios: Record<ScenarioName, (bench: Bench) => Promise<ScenarioResult>> = {
  rest,
  max,
  latency,
  far,
  'fan-out': fanOut,
  neighbours,
  floods,
  parked,
  backlog,
  ingest,
  list,
  'postgres-queue': postgresQueue,
  change,
  shards,
  profile,
};
