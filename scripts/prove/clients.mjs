// npm run prove -- clients: compiles the clients that oapi-codegen and openapi-python-client generate from the document, and calls
// the running service with them. Downloads both from their registries. Skips and names a client whose language is not installed.

import { readArguments, usage } from '../shared/arguments.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';
import { recordTests } from './proofs.mjs';

const USAGE = usage({
  call: 'npm run prove -- clients',
  purpose: 'compiles generated clients and calls the service with them; a proof (docs/proofs.md)',
  duration: '3 minutes',
  prerequisites: 'go and python3, with their registries; a client without its program is skipped and named',
});

readArguments(USAGE, {});

const results = await runWithTestServers({
  name: 'clients',
  args: ['e2e/clients/generated-clients'],
  environment: { PROVE_CLIENTS: '1' },
});
recordTests('clients', results);
