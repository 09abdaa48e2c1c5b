// npm run admin: makes the checkout ready, then the operators' command line, on the database of `npm start` if need be.
import { bootstrap } from './bootstrap.mjs';
import { root } from './workspace.mjs';

const SILENT_MS = 1_500;

/** Standard output is for answers only. */
async function step(name, work) {
  const timer = setTimeout(() => process.stderr.write(`${name} …\n`), SILENT_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

await bootstrap({ step });
const { adminEnvironment } = await import('./dist/home.js');
Object.assign(process.env, adminEnvironment(root, process.env));
await import('../services/management/dist/admin.js');
