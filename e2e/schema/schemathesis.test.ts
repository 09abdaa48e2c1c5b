import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, test } from '@jest/globals';
import { type FuzzWorld, openFuzzWorld } from '../attack/fuzz/world.ts';
import { callApi } from '../observability/system.ts';
import { reportFigure } from '../proof-figures.ts';

const SCHEMATHESIS = 'schemathesis==4.32.5';
const TIME_MS = 3_600_000;
/** Webhooks that requests may delete. */
const SPARE_WEBHOOKS = 10;

/** Set by `npm run prove -- schema`. Schemathesis is downloaded, and runs for minutes. */
const { PROVE_SCHEMA: isProof, SCHEMA_EXAMPLES: examples = '30', SCHEMA_SEED: seed = '1' } = process.env;
if (isProof === undefined)
  process.stderr.write('schemathesis is skipped here; npm run prove -- schema runs it\n');
const inProof = isProof === undefined ? test.skip : test;

const hooks = fileURLToPath(new URL('hooks.py', import.meta.url));

let folder: string;
let world: FuzzWorld;

if (isProof !== undefined) {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-schema-'));
    world = await openFuzzWorld();
    for (let created = 0; created < SPARE_WEBHOOKS; created += 1) await createSpareWebhook(world);
  });
  afterAll(async () => {
    await world.system.close();
    await rm(folder, { recursive: true, force: true });
  });
}

async function createSpareWebhook({ management, first }: FuzzWorld): Promise<void> {
  const path = `/v3/accounts/${first.accountId}/webhooks/subscriptions`;
  const body = { ...first.body, event_types: ['job.run.errored'], job_ids: [first.body.job_id] };
  const { data } = await callApi(first, management, { method: 'POST', path, body });
  first.spareWebhookIds.push(String(data.id));
}

/**
 * Returns the settings of schemathesis: most requests name existing resources, because others are only a 403 or a 404. The
 * stream of changes does not end, and a redirect leads to the page of another server.
 */
function settings({ accountId, ids, body, token, spareWebhookIds }: FuzzWorld['first']): string {
  const existing = Object.entries({ account_id: accountId, job_id: body.job_id, ...ids });
  const dictionary = (name: string, values: unknown) =>
    `[dictionaries.${name}]\nvalues = ${JSON.stringify(values)}`;
  return `
seed = ${seed}
request-timeout = 60
continue-on-failure = true
workers = 1
hooks = ${JSON.stringify(hooks)}
headers = { Authorization = "Token ${token}" }

[generation]
max-examples = ${examples}
allow-extra-parameters = true

[checks]
positive_data_acceptance.expected-statuses = ["2xx", 302, 401, 403, 404, 409, 412, 422, 429, 503]

${existing.map(([name, value]) => dictionary(name, [value])).join('\n')}
${dictionary('spare_webhook_id', spareWebhookIds)}

[parameters]
${existing.map(([name]) => `"path.${name}" = { dictionary = "${name}", probability = 0.9 }`).join('\n')}

[[operations]]
include-operation-id = ["listenToChanges", "startOidcSignIn", "completeOidcSignIn"]
enabled = false

[[operations]]
include-operation-id = "deleteSubscription"
parameters = { "path.webhook_id" = { dictionary = "spare_webhook_id", probability = 0.9 } }
`;
}

/** Installs schemathesis, once for a folder that `SCHEMA_VENV` names. */
async function install(): Promise<string> {
  const environment = process.env.SCHEMA_VENV ?? join(folder, 'venv');
  if (existsSync(join(environment, 'bin', 'schemathesis'))) return environment;
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', environment]);
  await run(join(environment, 'bin', 'pip'), ['install', '--quiet', SCHEMATHESIS]);
  return environment;
}

inProof(
  'every response to schemathesis is as documented, and no request causes a defect',
  async () => {
    const environment = await install();
    const accepted = join(folder, 'accepted');
    const config = join(folder, 'schemathesis.toml');
    await writeFile(config, settings(world.first));
    await writeFile(accepted, '');
    const address = `${world.management.url}/openapi.json`;
    const child = spawn(
      join(environment, 'bin', 'schemathesis'),
      [
        '--config-file',
        config,
        '--no-color',
        'run',
        address,
        '--warnings',
        'off',
        '--output-truncate',
        'false',
      ],
      {
        cwd: folder,
        env: { ...process.env, ACCEPTED_FAILURES: accepted },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    const reasons = await countReasons(accepted);
    for (const [reason, count] of reasons) process.stderr.write(`accepted ${count} times: ${reason}\n`);
    if (child.exitCode !== 0) throw new Error(output);
    const [cases = ''] = /\d+ generated/.exec(output) ?? [];
    const acceptedCount = [...reasons.values()].reduce((sum, count) => sum + count, 0);
    reportFigure(
      'schema',
      `seed ${seed}: ${cases} requests, ${acceptedCount} rejected by constraints that no schema expresses`,
    );
  },
  TIME_MS,
);

async function countReasons(file: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const line of (await readFile(file, 'utf8')).split('\n').filter(Boolean)) {
    const { reason } = JSON.parse(line) as { reason: string };
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}
