// npm run pictures -- lighthouse: measures how the list and the page of a webhook load on a slow phone.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { npx } from '../build/bootstrap.mjs';
import { readArguments, readNumber, usage } from '../shared/arguments.mjs';
import { run, step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { signIn, withConsoleWorld } from './console-world.mjs';

/** Downloaded for this command only, because it is ten times as large as the console and its build tools. */
const LIGHTHOUSE = 'lighthouse@13.5.0';
const SCORE_MIN = 90;
const INTERACTIVE_MS_MAX = 3_500;
const TRIES_MAX = 3;
/**
 * Lighthouse's defaults for a phone: a processor four times as slow, 1.6 Mbit/s and 150 ms of round-trip time.
 * Lighthouse loads the page at full speed and calculates the times under these conditions.
 */
const CONDITIONS = [
  '--form-factor=mobile',
  '--throttling-method=simulate',
  '--throttling.cpuSlowdownMultiplier=4',
];

const USAGE = usage({
  call: 'npm run pictures -- lighthouse [--runs <n>]',
  purpose: 'measures how the console loads on a slow phone',
  duration: '2 minutes for each run; each page is printed at once',
  prerequisites: 'chromium, and the npm registry for lighthouse; a machine without other load',
  details: '--runs  number of runs, of which the median is printed; 1 when omitted',
});

const { values } = readArguments(USAGE, { options: { runs: { type: 'string', default: '1' } } });
const runs = readNumber('--runs', values.runs, { isInteger: true });

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
          measureWithRetries({ url, cookie, folder, executablePath, chromiumArgs }),
        ),
      );
    const { score, ...times } = found.sort((one, other) => one.score - other.score)[Math.floor(runs / 2)];
    const isGood = score >= SCORE_MIN && times.interactive < INTERACTIVE_MS_MAX;
    const metrics = Object.entries(times).map(([metric, value]) => `${metric} ${value}`);
    process.stdout.write(`${isGood ? '✓' : '✗'} ${name}: performance ${score}; ${metrics.join(', ')}\n`);
    if (!isGood) process.exitCode = 1;
  }
});

/** Repeats the measurement when Chromium has recorded no trace, as Lighthouse's error asks for. */
async function measureWithRetries(options) {
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
