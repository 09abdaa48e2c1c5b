/** One configuration for every test. Packages are read from their TypeScript sources (condition "source"). */
export default {
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
  // One more than the two cores that CI has: much of what is tested waits, for an answer, a retry or a browser.
  maxWorkers: 3,
  testSequencer: '<rootDir>/scripts/test-order.mjs',
};
