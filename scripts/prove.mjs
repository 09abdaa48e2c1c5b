// npm run prove: runs the proofs that npm test does not contain, because they take long or need other programs.
import { runPart, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run prove -- <part> [--help]',
  purpose: 'runs a proof and writes its row of docs/proofs.md',
  duration: '1 to 50 minutes',
  prerequisites: 'depend on the part; see its --help',
  details: `clients    generated clients in Go and Python call the service
schema     schemathesis compares the service with its OpenAPI document
chart      helm renders the same manifests as the overlays
image      the images build and run
citus      the log on Citus
dashboard  every query of the dashboard returns data
matrix     the core tests on each supported Node, PostgreSQL and queue server

npm run chaos, npm run upgrade, npm run attack and npm run bench -- simulate --against-bench are also proofs.`,
});

await runPart(USAGE, {
  clients: () => import('./prove/clients.mjs'),
  schema: () => import('./prove/schema.mjs'),
  chart: () => import('./prove/chart.mjs'),
  image: () => import('./prove/image.mjs'),
  citus: () => import('./prove/citus.mjs'),
  dashboard: () => import('./prove/dashboard.mjs'),
  matrix: () => import('./prove/matrix.mjs'),
});
