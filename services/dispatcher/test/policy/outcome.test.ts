import { describe, expect, test } from '@jest/globals';
import { decideOutcome, toAttemptReport, toInterpretedReport } from '../../src/policy/outcome.ts';

const withStatus = (statusCode: number) => ({
  response: { statusCode, headers: {}, body: Buffer.alloc(0), truncated: false },
  error: null,
});

describe('the report of an attempt', () => {
  test.each([200, 201, 204, 299])('is a success for the status %i', (statusCode) => {
    expect(toAttemptReport(withStatus(statusCode))).toEqual({ httpStatusCode: statusCode, error: null });
  });

  test.each([301, 304, 400, 404, 410, 429, 500, 503])(
    'is a failure, recorded with its status %i',
    (statusCode) => {
      expect(toAttemptReport(withStatus(statusCode))).toEqual({
        httpStatusCode: statusCode,
        error: { code: 'unsuccessful_status', message: `The endpoint responded with ${statusCode}.` },
      });
    },
  );

  test.each([
    ['timeout', 504],
    ['connection_refused', 502],
    ['dns_failed', 502],
    ['address_forbidden', 502],
    ['tls_untrusted', 502],
  ] as const)('has for the error %s the status %i', (code, httpStatusCode) => {
    const error = { code, message: 'x' };
    expect(toAttemptReport({ response: null, error })).toEqual({ httpStatusCode, error });
  });

  test('has the status 504 for a response 200 whose body is not complete at the deadline', () => {
    const error = { code: 'timeout', message: 'Timed out after 10 s.' } as const;
    expect(toAttemptReport({ ...withStatus(200), error })).toEqual({ httpStatusCode: 504, error });
  });
});

describe('the outcome of an attempt', () => {
  const policy = { retriesMax: 5, baseDelayMs: 30_000 };
  /** Progress of a redelivery after six earlier attempts. */
  const after = (attempts: number) => ({ cycle: 6, attemptCount: 6 + attempts });
  const failure = toAttemptReport(withStatus(500));

  test('is delivered after a success', () => {
    expect(decideOutcome(toAttemptReport(withStatus(200)), after(6), policy, 0.5)).toEqual({
      kind: 'delivered',
    });
  });

  test('is a retry after any failure while the cycle has attempts left', () => {
    for (const statusCode of [404, 410, 500]) {
      expect(decideOutcome(toAttemptReport(withStatus(statusCode)), after(5), policy, 0.5)).toEqual({
        kind: 'retry',
        delayMs: 480_000,
      });
    }
  });

  test('is failed with a reason after the sixth failure', () => {
    const reason = 'All 6 attempts failed. Last: The endpoint responded with 500.';
    const progress = { cycle: 0, attemptCount: 6 };
    expect(decideOutcome(failure, progress, policy, 0.5)).toEqual({ kind: 'failed', reason });
  });

  test('counts only the attempts of the redelivery in the reason', () => {
    const reason = 'All 6 attempts of the redelivery failed. Last: The endpoint responded with 500.';
    expect(decideOutcome(failure, after(6), policy, 0.5)).toEqual({ kind: 'failed', reason });
  });

  test.each(['failed', 'failed_and_off'] as const)(
    'is failed without a retry if the format takes the response for final: %s',
    (result) => {
      const interpretation = { result, message: 'Slack responded with 404: no_service' };
      const report = toInterpretedReport(toAttemptReport(withStatus(404)), interpretation);
      expect(report.error).toEqual({ code: 'unsuccessful_status', message: interpretation.message });
      expect(decideOutcome(report, after(1), policy, 0.5, interpretation)).toEqual({
        kind: 'failed',
        reason: 'Not retried, because a retry would fail as well: Slack responded with 404: no_service',
      });
    },
  );

  test('is a retry after a 2xx that the format takes for a failure', () => {
    const interpretation = { result: 'retry', message: 'Teams responded with 200 and an error' } as const;
    const report = toInterpretedReport(toAttemptReport(withStatus(200)), interpretation);
    expect(report.error?.code).toBe('not_accepted');
    expect(decideOutcome(report, after(1), policy, 0.5, interpretation).kind).toBe('retry');
  });
});
