// npm run pictures -- lighthouse: performance of the list and of a webhook's page on a slow telephone.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { npx } from '../build/bootstrap.mjs';
import { readArguments, readNumber, usage } from '../shared/arguments.mjs';
import { run, step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { signIn, withConsoleWorld } from './console-world.mjs';

/** Fetched for this command only: it is ten times as large as the console with all that it is built from. */
const LIGHTHOUSE = 'lighthouse@13.5.0';
const SCORE_MIN = 90;
const INTERACTIVE_MS_MAX = 3_500;
const TRIES_MAX = 3;
/** Four times as slow a processor, 1.6 Mbit/s and 150 ms to and fro: what Lighthouse means by a telephone. It loads the page as fast as it can and calculates how that would have gone. */
const CONDITIONS = [
  '--form-factor=mobile',
  '--throttling-method=simulate',
  '--throttling.cpuSlowdownMultiplier=4',
];

const USAGE = usage({
  call: 'npm run pictures -- lighthouse [--runs <n>]',
  purpose: 'measures how the console loads on a slow phone',
  duration: '2 minutes for each run; each page is printed at once',
  prerequisites: 'chromium, and the npm registry for lighthouse; a machine without other work',
  details: '--runs  prints the median of as many; 1 when omitted',
});

const { values } = readArguments(USAGE, { options: { runs: { type: 'string', default: '1' } } });
const runs = readNumber('--runs', values.runs, { isWhole: true });

await withConsoleWorld(async ({ management, demo, executablePath, chromiumArgs, opened }) => {
  const cookie = await signIn(management, demo.person);
  const folder = await mkdtemp(join(tmpdir(), 'runhook-lighthouse-'));
  opened(() => rm(folder, { recursive: true, force: true }));
  const list = `${management}/accounts/${demo.account.id}/settings/webhooks`;
  const pages = { 'list of webhooks': list, webhook: `${list}/${demo.webhookIds[0]}` };
  for (const [name, url] of Object.entries(pages)) {
    const found = [];
    for (let number = 1; number <= runs; number += 1)
      found.push(
        await step(`${name}, ${number} of ${runs}`, () =>
          measureAgain({ url, cookie, folder, executablePath, chromiumArgs }),
        ),
      );
    const { score, ...times } = found.sort((one, other) => one.score - other.score)[Math.floor(runs / 2)];
    const isGood = score >= SCORE_MIN && times.interactive < INTERACTIVE_MS_MAX;
    const told = Object.entries(times).map(([metric, value]) => `${metric} ${value}`);
    process.stdout.write(`${isGood ? '✓' : '✗'} ${name}: performance ${score}; ${told.join(', ')}\n`);
    if (!isGood) process.exitCode = 1;
  }
});

/** Now and then Chromium records nothing, for which Lighthouse asks to be run again. */
async function measureAgain(options) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await measure(options);
    } catch (error) {
      if (tries === TRIES_MAX || !/NO_NAVSTART|NO_TRACING_STARTED/.test(error.output ?? '')) throw error;
    }
  }
}

async function measure({ url, cookie, folder, executablePath, chromiumArgs }) {
  const report = join(folder, 'report.json');
  const { file, args } = npx();
  await run(
    file,
    [
      ...args,
      '--yes',
      LIGHTHOUSE,
      url,
      '--quiet',
      '--only-categories=performance',
      '--output=json',
      `--output-path=${report}`,
      `--extra-headers=${JSON.stringify({ cookie })}`,
      `--chrome-flags=--headless=new ${chromiumArgs.join(' ')}`,
      ...CONDITIONS,
    ],
    { cwd: root, env: { ...process.env, CHROME_PATH: executablePath }, name: LIGHTHOUSE },
  );
  const { categories, audits } = JSON.parse(await readFile(report, 'utf8'));
  const ms = (audit) => Math.round(audits[audit].numericValue);
  return {
    score: Math.round(categories.performance.score * 100),
    interactive: ms('interactive'),
    FCP: ms('first-contentful-paint'),
    LCP: ms('largest-contentful-paint'),
    TBT: ms('total-blocking-time'),
    'speed index': ms('speed-index'),
    CLS: Number(audits['cumulative-layout-shift'].numericValue.toFixed(3)),
    kB: Math.round(audits['total-byte-weight'].numericValue / 1_000),
  };
}
