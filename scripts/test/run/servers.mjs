import { bootstrap } from '../../build/bootstrap.mjs';
import { step } from '../../shared/command.mjs';
import { runJest } from './run-jest.mjs';
import { makeTestFolder } from './test-folder.mjs';

/** Settings of PostgreSQL that trade durability for speed, because the data of these servers are discarded. */
export const POSTGRES_SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '300',
};
const REDIS_DATABASES = 512;

/**
 * Starts the servers of the tests: PostgreSQL (or the one of TEST_DATABASE_URL) with the migrated template, and Redis (or the one
 * of REDIS_URL) if a server is installed. If a start fails, the servers started so far are stopped. `openSystemPostgres` of the
 * result starts another PostgreSQL with programs of the system, and returns its URL.
 *
 * @param {{ folder: string, runId: string }} options `folder` is for data; other accounts must be able to traverse it
 */
export async function startTestServers({ folder, runId }) {
  // Bootstrap builds these modules, so the import must follow it.
  const { findRedisServer, startPostgres, startRedis } = await import(
    '../../../packages/embedded/dist/index.js'
  );
  const {
    findHeadlessChromium,
    findPoolers,
    NO_CHROMIUM,
    prepareTemplate,
    removeTestDatabases,
    removeTestQueues,
  } = await import('../../../packages/testing/dist/index.js');
  const closers = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) {
      await closer().catch((error) =>
        process.stderr.write(`while stopping the test servers: ${error.message}\n`),
      );
    }
  };

  async function openPostgres() {
    const externalUrl = process.env.TEST_DATABASE_URL;
    if (externalUrl) {
      closers.push(() => removeTestDatabases(externalUrl, runId));
      return externalUrl;
    }
    const postgres = await step('starting PostgreSQL', () =>
      startPostgres({ dataDir: `${folder}/postgres`, settings: POSTGRES_SETTINGS }),
    );
    closers.push(() => postgres.stop());
    return postgres.url;
  }

  /** Starts a second PostgreSQL from other programs, with its default settings except for those that make tests fast. */
  async function openSystemPostgres(binaries) {
    const postgres = await step(`starting the system's PostgreSQL ${binaries.version}`, () =>
      startPostgres({
        dataDir: `${folder}/system-postgres`,
        settings: POSTGRES_SETTINGS,
        internals: { binaries },
      }),
    );
    closers.push(() => postgres.stop());
    await step('migrating its template database', () => prepareTemplate(postgres.url));
    return postgres.url;
  }

  async function openRedis() {
    const externalUrl = process.env.REDIS_URL;
    if (externalUrl) {
      closers.push(() => removeTestQueues(externalUrl));
      return externalUrl;
    }
    if (findRedisServer() === null) return null;
    const redis = await startRedis({ dataDir: `${folder}/redis`, databases: REDIS_DATABASES });
    closers.push(() => redis.stop());
    return redis.url;
  }

  try {
    const postgresUrl = await openPostgres();
    await step('migrating the template database', () => prepareTemplate(postgresUrl));
    const redisUrl = await openRedis();
    return {
      environment: {
        TEST_RUN_ID: runId,
        TEST_POSTGRES_URL: postgresUrl,
        ...(redisUrl === null ? {} : { TEST_REDIS_URL: redisUrl }),
      },
      backends:
        redisUrl === null
          ? 'PostgreSQL; Redis was skipped, because no redis-server is on the path and REDIS_URL is not set'
          : 'PostgreSQL and Redis',
      openSystemPostgres,
      browser: findHeadlessChromium() ?? `skipped, because ${NO_CHROMIUM}`,
      poolers: describePoolers(findPoolers()),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Runs tests outside of `npm test`: builds the checkout, starts servers in a temporary folder, runs the tests, and sets the exit
 * code. Ctrl-C stops everything in order.
 *
 * @param {{ name: string, args: string[], environment: Record<string, string> }} options `name` is part of the folder's name
 * @returns {Promise<Awaited<ReturnType<typeof runJest>>>} the results; `isSuccess` is false if the run was stopped
 */
export async function runWithTestServers({ name, args, environment }) {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stopping.abort());
  await bootstrap({ signal: stopping.signal });
  const { folder, environment: folderEnvironment, remove } = await makeTestFolder(name);
  let servers = null;
  try {
    servers = await startTestServers({ folder, runId: `${process.pid}x${Date.now().toString(36)}` });
    const results = await runJest({
      args,
      environment: { ...folderEnvironment, ...servers.environment, ...environment },
      folder,
      signal: stopping.signal,
    });
    const isSuccess = results.isSuccess && !stopping.signal.aborted;
    process.exitCode = isSuccess ? 0 : 1;
    return { ...results, isSuccess };
  } finally {
    await servers?.close();
    await remove();
  }
}

function describePoolers(poolers) {
  const names = poolers.map(({ version }) => `PgBouncer ${version}`).join(', ');
  if (poolers.some(({ tracksStatements }) => tracksStatements)) return names;
  const missing = 'TEST_PGBOUNCER names no PgBouncer of 1.21 or newer';
  if (poolers.length > 0) return `${names}; tests with tracked statements were skipped, because ${missing}`;
  return `skipped, because no pgbouncer is on the path and ${missing}`;
}
