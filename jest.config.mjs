import { workerCount } from './scripts/test/run/workers.mjs';

/** `npm test` leaves out what takes minutes, `npm run test:long` runs only that. Scripts that name their files set "all". */
const SELECTIONS = {
  short: ['/node_modules/', '(?<=\\.long)\\.test\\.ts$'],
  long: ['/node_modules/', '(?<!\\.long)\\.test\\.ts$'],
  all: ['/node_modules/'],
};

/** One configuration for every test. Packages are read from their TypeScript sources (condition "source"). */
export default {
  testPathIgnorePatterns: SELECTIONS[process.env.TEST_SELECTION ?? 'short'],
  testMatch: [
    '<rootDir>/{packages,services}/*/test/**/*.test.ts',
    '<rootDir>/{scripts,e2e,bench}/**/*.test.ts',
  ],
  // Anchored: a checkout may itself lie below a folder named dist.
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
  // A net under what hangs, no bound of what is tested: on a machine with other work a test takes many times as long.
  testTimeout: 300_000,
  // Nothing of a test run stays outside the checkout.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  watchman: false,
  maxWorkers: workerCount(),
  reporters: ['default', '<rootDir>/scripts/test/run/reporter.mjs'],
  testSequencer: '<rootDir>/scripts/test/run/order.mjs',
};
