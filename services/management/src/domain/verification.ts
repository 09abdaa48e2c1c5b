import type { EgressResult } from '@runhook/egress';

/** What the test endpoint answers (spec, section 4.5). */
export interface Verification {
  /** One plain sentence, or null when the endpoint answered with a 2xx. */
  verification_error: string | null;
  /** The endpoint's status; "504" when it did not answer in time, "502" when it could not be reached. */
  verification_status_code: string;
}

export function verificationOf({ response, error }: Pick<EgressResult, 'response' | 'error'>): Verification {
  if (error || !response) {
    return {
      verification_error: error?.message ?? 'The endpoint did not answer.',
      verification_status_code: error?.code === 'timeout' ? '504' : '502',
    };
  }
  const { statusCode } = response;
  const delivered = statusCode >= 200 && statusCode < 300;
  return {
    verification_error: delivered ? null : `The endpoint answered ${statusCode}.`,
    verification_status_code: String(statusCode),
  };
}
