import type { Bench, ScenarioResult } from '../bench.ts';
import type { ScenarioName } from '../options.ts';
import { backlog } from './backlog.ts';
import { change } from './change.ts';
import { fanOut } from './fan-out.ts';
import { far } from './far.ts';
import { ingest } from './ingest.ts';
import { latency } from './latency.ts';
import { list } from './list.ts';
import { max } from './max.ts';
import { neighbours } from './neighbours.ts';
import { postgresQueue } from './postgres-queue.ts';
import { profile } from './profile.ts';

export const scenarios: Record<ScenarioName, (bench: Bench) => Promise<ScenarioResult>> = {
  max,
  latency,
  far,
  'fan-out': fanOut,
  neighbours,
  backlog,
  ingest,
  list,
  'postgres-queue': postgresQueue,
  change,
  profile,
};
