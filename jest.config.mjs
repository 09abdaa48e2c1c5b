import { SYSTEM_POSTGRES } from './scripts/test/run/system-postgres.mjs';
import { workerCount } from './scripts/test/run/workers.mjs';

/**
 * Selects test files: `npm test` omits those that take minutes, `npm run test:long` runs only those. Scripts that name their files
 * set "all".
 */
const SELECTIONS = {
  short: ['/node_modules/', '(?<=\\.long)\\.test\\.ts$'],
  long: ['/node_modules/', '(?<!\\.long)\\.test\\.ts$'],
  all: ['/node_modules/'],
};

/**
 * Tests that `npm test` also runs on the PostgreSQL of the system's packages. Debian's has JIT on by default and is the oldest
 * supported version. They cover the plans of the statements and the essential path of the story.
 */
const ON_SYSTEM_POSTGRES = [
  '<rootDir>/services/dispatcher/test/record/plans*.test.ts',
  '<rootDir>/e2e/story-essentials.test.ts',
];

/** Packages are read from their TypeScript sources (condition "source"). */
const project = {
  testPathIgnorePatterns: SELECTIONS[process.env.TEST_SELECTION ?? 'short'],
  testMatch: [
    '<rootDir>/{packages,services}/*/test/**/*.test.ts',
    '<rootDir>/{scripts,e2e,bench}/**/*.test.ts',
  ],
  // Anchored, because the checkout itself may be below a folder named dist.
  modulePathIgnorePatterns: [
    '<rootDir>/.runhook/',
    '<rootDir>/(packages|services)/[^/]+/dist/',
    '<rootDir>/scripts/dist/',
    '<rootDir>/bench/dist/',
  ],
  transform: {
    '\\.tsx?$': [
      '@swc/jest',
      {
        jsc: { target: 'es2023', parser: { syntax: 'typescript' } },
        module: { type: 'es6' },
      },
    ],
  },
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  // A test run writes no files outside of the checkout.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
};

/** The second project runs in the same workers as the others, so that no core waits for it at the end. */
const onSystemPostgres = {
  ...project,
  displayName: SYSTEM_POSTGRES,
  testMatch: ON_SYSTEM_POSTGRES,
  setupFiles: ['<rootDir>/scripts/test/run/use-system-postgres.mjs'],
};

export default {
  ...(process.env.TEST_SYSTEM_POSTGRES_URL === undefined
    ? project
    : { projects: [project, onSystemPostgres] }),
  // Ends tests that hang. It is no bound on the tested code: on a busy machine a test takes many times as long.
  testTimeout: 300_000,
  watchman: false,
  maxWorkers: workerCount(),
  reporters: ['default', '<rootDir>/scripts/test/run/reporter.mjs'],
  testSequencer: '<rootDir>/scripts/test/run/order.mjs',
};
