import type { Bench, ScenarioResult } from '../bench.ts';
import type { ScenarioName } from '../options.ts';
import { backlog } from './backlog.ts';
import { change } from './change.ts';
import { deferred } from './deferred.ts';
import { eventsPerCall } from './events-per-call.ts';
import { firstMinute } from './first-minute.ts';
import { floods } from './floods.ts';
import { halfFails } from './half-fails.ts';
import { ingest } from './ingest.ts';
import { jit } from './jit.ts';
import { far, latency, postgresQueue } from './latency.ts';
import { list } from './list.ts';
import { neighbours } from './neighbours.ts';
import { node } from './node.ts';
import { profile } from './profile.ts';
import { rest } from './rest.ts';
import { restBacklog } from './rest-backlog.ts';
import { shards } from './shards.ts';
import { soak } from './soak.ts';
import { fanOut, max } from './throughput.ts';

export const scenarios: Record<ScenarioName, (bench: Bench) => Promise<ScenarioResult>> = {
  rest,
  'rest-backlog': restBacklog,
  'events-per-call': eventsPerCall,
  'first-minute': firstMinute,
  'half-fails': halfFails,
  jit,
  node,
  max,
  latency,
  far,
  'fan-out': fanOut,
  neighbours,
  floods,
  deferred,
  backlog,
  ingest,
  list,
  'postgres-queue': postgresQueue,
  change,
  shards,
  profile,
  soak,
};
