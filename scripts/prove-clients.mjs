// npm run prove-clients: what oapi-codegen and openapi-python-client make of the document, compiled and used against the
// running service. Fetches both from their registries; what the machine has no Go or no Python for is left out, and said.
import { runWithTestServers } from './test-servers.mjs';

await runWithTestServers({
  name: 'clients',
  args: ['e2e/clients/generated-clients.test.ts'],
  environment: { PROVE_CLIENTS: '1' },
});
