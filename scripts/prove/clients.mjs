// npm run prove -- clients: calls the running services with clients that others wrote. Compiles those that oapi-codegen and
// openapi-python-client generate from the document, and installs unmodified packages of clients of the API family from PyPI. Skips
// and names a client whose language is not installed, and writes the table of docs/clients.md.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArguments, rejectArguments, usage } from '../shared/arguments.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';
import { clientNames, writeClients } from './clients-page.mjs';
import { recordTests } from './proofs.mjs';

const USAGE = usage({
  call: 'npm run prove -- clients [--only <names>]',
  purpose: 'calls the services with generated and with unmodified clients; a proof (docs/proofs.md)',
  duration: '15 minutes, the first time 25',
  prerequisites:
    'go, openssl, python3 (for dbt-mcp of 3.12), and the registries; a client without its program is skipped and named',
  details:
    '--only    comma-separated names of e2e/clients/clients.json, or generated; writes docs/clients.md but not docs/proofs.md',
});

const { values } = readArguments(USAGE, { options: { only: { type: 'string' } } });
const only = values.only?.split(',');
const names = clientNames();
const unknown = only?.filter((name) => !names.includes(name)) ?? [];
if (unknown.length > 0) rejectArguments(`unknown: ${unknown.join(', ')}; one of ${names.join(', ')}`);

const folder = mkdtempSync(join(tmpdir(), 'runhook-client-calls-'));
const file = join(folder, 'calls.jsonl');
try {
  const results = await runWithTestServers({
    name: 'clients',
    args: ['e2e/clients/'],
    environment: { PROVE_CLIENTS: values.only ?? 'all', CLIENT_CALLS: file },
  });
  const calls = readCalls(file);
  if (calls.length > 0) writeClients(calls);
  if (only === undefined) recordTests('clients', results);
} finally {
  rmSync(folder, { recursive: true });
}

function readCalls(path) {
  try {
    return readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}
