// npm run prove-clients: what oapi-codegen and openapi-python-client make of the document, compiled and used against the
// running service. Fetches both from their registries; what the machine has no Go or no Python for is left out, and said.
import { recordTests } from './prove/proofs.mjs';
import { runWithTestServers } from './test-servers.mjs';

const results = await runWithTestServers({
  name: 'clients',
  args: ['e2e/clients/generated-clients'],
  environment: { PROVE_CLIENTS: '1' },
});
recordTests('clients', results);
