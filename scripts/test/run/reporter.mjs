import { appendFileSync } from 'node:fs';

/** Appends the result of each file to TEST_RESULTS as soon as the file has ended, so that an interrupted run has its results so far. */
export default class ResultsReporter {
  onTestResult(test, result) {
    const { testFilePath, numPassingTests, numFailingTests, numPendingTests, numTodoTests, perfStats } =
      result;
    const counts = {
      file: testFilePath,
      project: test.context.config.displayName?.name,
      seconds: perfStats.runtime / 1_000,
      passed: numPassingTests,
      // A file that could not run counts as a failure.
      failed: numFailingTests + (result.testExecError ? 1 : 0),
      skipped: numPendingTests + numTodoTests,
    };
    const file = process.env.TEST_RESULTS;
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(counts)}\n`);
  }

  /** Notifies the process that started jest that all tests have ended. */
  onRunComplete() {
    process.send?.('complete');
  }
}
