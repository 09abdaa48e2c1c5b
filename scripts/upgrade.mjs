// npm run upgrade: from the release before to this one under load, and back, with the ledger of what was published.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArguments, refuseArguments } from './arguments.mjs';
import { bootstrap } from './bootstrap.mjs';
import { buildOlder, releaseBefore, whyNotBeside } from './older-release.mjs';
import { runJest } from './run-jest.mjs';

const USAGE = `npm run upgrade [-- --from <tag or commit> --built <folder>]

--from   the release before; the last tag when omitted
--built  one that is built there already`;

const { values } = readArguments(USAGE, { options: { from: { type: 'string' }, built: { type: 'string' } } });
const release = releaseBefore(values.from);
const reason = values.built === undefined ? whyNotBeside(release) : null;
if (reason !== null) refuseArguments(reason);
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-upgrade-'));
try {
  await chmod(folder, 0o711);
  process.stdout.write(`from ${values.built ?? release} to this checkout, and back\n`);
  const older = values.built ?? (await buildOlder(release, folder, stopping.signal));
  const { isSuccess } = await runJest({
    // No test of `npm test`: it needs another release, and minutes to build it.
    args: ['--testMatch', '**/e2e/chaos/upgrade.story.ts', '--runInBand'],
    environment: { UPGRADE_FROM: older },
    folder,
    signal: stopping.signal,
  });
  process.exitCode = isSuccess && !stopping.signal.aborted ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
