// npm run prove -- schema: calls every operation of the OpenAPI document with schemathesis, which generates valid and invalid
// requests from it. Downloads schemathesis from its registry.

import { readArguments, readNumber, usage } from '../shared/arguments.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';
import { recordTests } from './proofs.mjs';

/** Minimum number of examples of a proof: fewer are for development and do not write the row of the proof. */
const PROOF_EXAMPLES_MIN = 30;
const USAGE = usage({
  call: 'npm run prove -- schema [--examples <n> --seed <n>]',
  purpose: 'compares the service with its OpenAPI document by schemathesis; a proof (docs/proofs.md)',
  duration: '10 minutes',
  prerequisites: 'python3 with its registry',
  details: `--examples  random requests for each operation; ${PROOF_EXAMPLES_MIN} when omitted
--seed      repeats the requests of a run; 1 when omitted

SCHEMA_VENV names a folder in which schemathesis remains installed. e2e/schema/constraints.json lists the constraints that no
schema expresses.`,
});

const { values } = readArguments(USAGE, {
  options: {
    examples: { type: 'string', default: String(PROOF_EXAMPLES_MIN) },
    seed: { type: 'string', default: '1' },
  },
});
const examples = readNumber('--examples', values.examples, { min: 1, isInteger: true });
readNumber('--seed', values.seed, { min: 0, isInteger: true });
const results = await runWithTestServers({
  name: 'schema',
  args: ['e2e/schema'],
  environment: { PROVE_SCHEMA: '1', SCHEMA_EXAMPLES: values.examples, SCHEMA_SEED: values.seed },
});
if (examples >= PROOF_EXAMPLES_MIN) recordTests('schema', results);
