// npm run chaos: every fault on every queue back end. --seed <number> brings the moments of a run back; --seeds <number>
// goes on with as many seeds; --only <text> takes the faults whose name holds it; --older <tag or commit> names the
// release that works beside this one, which is the last tag when omitted.
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { bootstrap } from './bootstrap.mjs';
import { runJest } from './run-jest.mjs';
import { root } from './workspace.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    only: { type: 'string' },
    older: { type: 'string' },
  },
});
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
try {
  const older = await buildOlder(values.older ?? lastTag());
  const first = Number(values.seed ?? Date.now() % 1_000_000);
  const failed = [];
  for (let seed = first; seed < first + Number(values.seeds) && !stopping.signal.aborted; seed += 1) {
    const { isSuccess } = await runJest({
      args: ['e2e/chaos/chaos.test.ts', '--runInBand'],
      environment: {
        CHAOS: 'long',
        CHAOS_SEED: String(seed),
        ...(values.only === undefined ? {} : { CHAOS_ONLY: values.only }),
        ...(older === null ? {} : { CHAOS_OLDER: older }),
      },
      folder,
      signal: stopping.signal,
    });
    if (!isSuccess) failed.push(seed);
  }
  if (values.seeds !== '1') {
    process.stderr.write(
      `seeds ${first} to ${first + Number(values.seeds) - 1}, failed: ${failed.join(', ') || 'none'}\n`,
    );
  }
  process.exitCode = failed.length === 0 && !stopping.signal.aborted ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Null in a checkout without one. */
function lastTag() {
  const { status, stdout } = git('describe', '--tags', '--abbrev=0');
  return status === 0 ? stdout.trim() : null;
}

/** A release as it was, built in a folder of its own; the folder. */
async function buildOlder(release) {
  if (release === null) return null;
  const checkout = join(folder, 'older');
  await mkdir(checkout);
  const archive = join(folder, 'older.tar');
  for (const { status, stderr } of [
    git('archive', `--output=${archive}`, release),
    spawnSync('tar', ['-xf', archive, '-C', checkout], { encoding: 'utf8' }),
  ]) {
    if (status !== 0) throw new Error(`${release} could not be taken out of git: ${stderr}`);
  }
  const script = pathToFileURL(join(checkout, 'scripts', 'bootstrap.mjs')).href;
  const { bootstrap: bootstrapOlder } = await import(script);
  await bootstrapOlder({ signal: stopping.signal });
  return checkout;
}

function git(...args) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' });
}
