// A minimal service that runs as a separate process: `node service.fixture.mjs <scenario>`.
import { createLogger, Lifecycle } from '../dist/index.js';

const [scenario] = process.argv.slice(2);
const lifecycle = new Lifecycle({ logger: createLogger({ service: 'fixture', level: 'info' }) });
const say = (word) => process.stdout.write(`${JSON.stringify({ say: word })}\n`);

const keepAlive = setInterval(() => {}, 1_000);
lifecycle.onClose('database', () => {
  clearInterval(keepAlive);
  say('database closed');
});
lifecycle.onClose('worker', async () => {
  say('worker closing');
  if (scenario === 'hang' || scenario === 'outlast') await new Promise(() => {});
  if (scenario === 'fault while closing') void Promise.reject(new Error('late fault'));
  await new Promise((resolve) => setTimeout(resolve, 20));
});

const stopped = lifecycle.runUntilSignal(scenario === 'outlast' ? { budgetMs: 300 } : {});
say('running');
if (scenario === 'reject') void Promise.reject(new Error('an unhandled rejection'));
if (scenario === 'throw')
  setImmediate(() => {
    throw new Error('an uncaught exception');
  });
if (scenario === 'close') void lifecycle.close('asked');
process.exit(await stopped);
