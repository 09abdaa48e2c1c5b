import type { Verification } from '../api/types.ts';
import { answerAdvice } from '../delivery/answer-advice.ts';
import { statusWords } from '../words/http-status.ts';

export interface VerificationWords {
  isGood: boolean;
  title: string;
  /** What to check; null when all is well. */
  advice: string | null;
}

/** 502 and 504 are ours when no answer came, and then the sentence of the service says more than the number. */
export function verificationWords({
  verification_error,
  verification_status_code,
}: Verification): VerificationWords {
  const isGood = verification_error === null;
  const isOurs = verification_status_code === '502' || verification_status_code === '504';
  return {
    isGood,
    title:
      isOurs && verification_error !== null
        ? withoutFullStop(verification_error)
        : `Your endpoint answered ${statusWords(verification_status_code)}`,
    advice: isGood ? null : answerAdvice(verification_status_code, null),
  };
}

function withoutFullStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
