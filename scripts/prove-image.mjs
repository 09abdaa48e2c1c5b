// npm run prove-image: executes the Dockerfile without a container engine and runs what its images would hold.
// --node <file> takes that node for the one of the base image; otherwise one of the same major version is installed
// from npm. --keep leaves the folders.
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bootstrap } from './bootstrap.mjs';
import { run } from './command.mjs';
import { root } from './workspace.mjs';

const { values } = parseArgs({ options: { node: { type: 'string' }, keep: { type: 'boolean' } } });
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());
const say = (line) => process.stdout.write(`${line}\n`);

await bootstrap({ signal: stopping.signal });
const { findRedisServer, startPostgres, startRedis } = await import('../packages/embedded/dist/index.js');
const { proveDockerfile } = await import('./dist/image/prove-dockerfile.js');

const folder = await mkdtemp(join(tmpdir(), 'runhook-image-'));
// The images run as another account.
await chmod(folder, 0o755);
const closers = [];
try {
  const node = values.node ?? (await nodeOfImage());
  say(`node for the images: ${node}`);
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres') });
  closers.push(() => postgres.stop());
  let queueUrl = postgres.url;
  if (findRedisServer() === null) say('no redis-server is on the path: the queue is in PostgreSQL');
  else {
    const redis = await startRedis({ dataDir: join(folder, 'redis') });
    closers.push(() => redis.stop());
    queueUrl = redis.url;
  }
  await proveDockerfile({
    checkout: root,
    workFolder: join(folder, 'build'),
    node,
    databaseUrl: postgres.url,
    queueUrl,
    environment: process.env,
    say,
  });
  say('the images are proven');
} catch (error) {
  say(`\n${error.message}`);
  process.exitCode = 1;
} finally {
  for (const close of closers.reverse()) await close();
  if (values.keep) say(`kept: ${folder}`);
  else await rm(folder, { recursive: true, force: true });
}

/** npm has Node's own binaries; of the exact version they often come later, so the major version has to do. */
async function nodeOfImage() {
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8');
  const [, major] = /^ARG NODE_VERSION=(\d+)\./m.exec(dockerfile);
  if (process.versions.node.split('.')[0] === major) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  try {
    await run(
      'npm',
      ['install', '--prefix', join(folder, 'node'), '--no-save', '--ignore-scripts', `${name}@${major}`],
      {
        cwd: folder,
        signal: stopping.signal,
        name: `npm install ${name}`,
      },
    );
    return join(folder, 'node', 'node_modules', name, 'bin', 'node');
  } catch {
    say(`${name}@${major} could not be had: this node (${process.versions.node}) stands for it`);
    return process.execPath;
  }
}
