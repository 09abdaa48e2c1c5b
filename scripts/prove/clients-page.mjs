import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../shared/workspace.mjs';

const PAGE = join(root, 'docs', 'clients.md');

const PACKAGES = join(root, 'e2e', 'clients', 'clients.json');

/** Returns the names that `--only` accepts. */
export function clientNames() {
  return ['generated', ...JSON.parse(readFileSync(PACKAGES, 'utf8')).map(({ name }) => name)];
}

const INTRODUCTION = `# Clients

Clients of this API family work unmodified, with their documented configuration: the address of the service, an account id, and an
[API key](contract.md#api-keys). \`npm run prove -- clients\` installs each from its registry, calls the running services with it, and writes the
table; a runner executes the runs that the clients trigger. Most clients insist on https. \`PUBLIC_URL\` must be the address that clients use,
because it is the base of each \`href\`.

| Client | Version | Calls that pass | Not served |
|---|---|---|---|
`;

/** Reads the rows of the page by client. */
function readRows() {
  const text = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '';
  const rows = text.split('\n').filter((line) => /^\| .+ \| \S+ \| \d+ of \d+ \| /.test(line));
  return new Map(rows.map((row) => [row.slice(2).split(' | ')[0], row]));
}

/** Replaces the rows of the clients that were called. @param {{ client: string, version: string, call: string, outcome: string, detail: string }[]} calls */
export function writeClients(calls) {
  const rows = readRows();
  for (const [client, ofClient] of groups(calls, ({ client }) => client))
    rows.set(client, rowOf(client, ofClient));
  const sorted = [...rows].sort(([a], [b]) => a.localeCompare(b)).map(([, row]) => `${row}\n`);
  writeFileSync(PAGE, [INTRODUCTION, ...sorted].join(''));
  process.stdout.write('docs/clients.md: written\n');
}

function rowOf(client, calls) {
  const unserved = calls.filter(({ outcome }) => outcome === 'not served');
  const served = calls.length - unserved.length;
  const passed = calls.filter(({ outcome }) => outcome === 'pass').length;
  const reasons = groups(unserved, ({ detail }) => detail).map(
    ([reason, ofReason]) => `${ofReason.map(({ call }) => `\`${call}\``).join(', ')}: ${reason}`,
  );
  const cells = [client, calls[0].version, `${passed} of ${served}`, reasons.join('; ') || 'none'];
  return `| ${cells.map((cell) => cell.replaceAll('|', '/')).join(' | ')} |`;
}

/** Returns pairs of a key and the values that have it. */
function groups(values, keyOf) {
  return [...new Set(values.map(keyOf))].map((key) => [key, values.filter((value) => keyOf(value) === key)]);
}
