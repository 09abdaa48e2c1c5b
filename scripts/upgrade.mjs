// npm run upgrade: upgrades from the previous release to this one under load, and back, with the ledger of published events. With
// --stop the services stop for the migration, and the upgrade cannot be reversed.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './build/bootstrap.mjs';
import { recordTests } from './prove/proofs.mjs';
import { readArguments, rejectArguments, usage } from './shared/arguments.mjs';
import { runJest } from './test/run/run-jest.mjs';
import {
  buildRelease,
  findIncompatibility,
  releaseBefore,
  releaseBeforeStop,
} from './upgrade/older-release.mjs';

const USAGE = usage({
  call: 'npm run upgrade [-- --from <tag or commit> --built <folder> --stop]',
  purpose: 'upgrades from the previous release to this one under load, and back; a proof (docs/proofs.md)',
  duration: '5 minutes; each step is printed at once',
  prerequisites: 'git with the history of the previous release',
  details: `--from   the previous release; when omitted, the last tag, or with --stop the commit before the release that requires the stop
--built  folder in which that release is already built
--stop   the services stop, PostgreSQL crashes, the log is migrated, and this release starts; publishers continue`,
});

const { values } = readArguments(USAGE, {
  options: {
    from: { type: 'string' },
    built: { type: 'string' },
    stop: { type: 'boolean', default: false },
  },
});
const release = values.stop ? releaseBeforeStop(values.from) : releaseBefore(values.from);
const reason = values.built === undefined && !values.stop ? findIncompatibility(release) : null;
const proof = values.stop ? 'upgrade stop' : 'upgrade';
const story = values.stop ? 'stop-upgrade' : 'upgrade';
if (reason !== null) rejectArguments(reason);
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-upgrade-'));
try {
  await chmod(folder, 0o711);
  process.stdout.write(
    `from ${values.built ?? release} to this checkout${values.stop ? ', with a stop' : ', and back'}\n`,
  );
  const olderCheckout = values.built ?? (await buildRelease(release, folder, stopping.signal));
  const results = await runJest({
    // `npm test` does not contain it, because it needs another release and minutes to build it.
    args: ['--testMatch', `**/e2e/chaos/${story}.story.ts`, '--runInBand'],
    environment: { UPGRADE_FROM: olderCheckout },
    folder,
    signal: stopping.signal,
  });
  const isSuccess = results.isSuccess && !stopping.signal.aborted;
  process.exitCode = isSuccess ? 0 : 1;
  const from = { proof, figure: `from ${values.built ?? release}` };
  recordTests(proof, { ...results, isSuccess, figures: [from, ...results.figures] }, { isCounted: false });
} finally {
  await rm(folder, { recursive: true, force: true });
}
