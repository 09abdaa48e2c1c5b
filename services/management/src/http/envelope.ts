import type { Problem } from '@runhook/contract';
import type { Response } from 'express';

/** What an endpoint answers: the success half of the envelope (spec, section 2.2). */
export interface Answer {
  /** HTTP status and `status.code`. */
  code: number;
  data: unknown;
  extra?: unknown;
  /** On the answer to a delete only. */
  isSuccess?: true;
  headers?: Record<string, string>;
}

/** The failure half. `developerMessage` is "" when there is nothing to add: typed clients decode a string. */
export interface Failure {
  code: number;
  userMessage: string;
  developerMessage: string;
  headers: Record<string, string>;
  /** Of a 400: what is wrong with which field. */
  problems?: readonly Problem[] | undefined;
}

export function sendAnswer(response: Response, answer: Answer): void {
  const { code, data, extra, isSuccess, headers = {} } = answer;
  const status = isSuccess === undefined ? { code } : { code, is_success: isSuccess };
  response
    .status(code)
    .set(headers)
    .json(extra === undefined ? { data, status } : { data, status, extra });
}

export function sendFailure(response: Response, failure: Failure): void {
  const { code, userMessage, developerMessage, headers, problems } = failure;
  const status = { code, is_success: false, user_message: userMessage, developer_message: developerMessage };
  response
    .status(code)
    .set(headers)
    .json({ status: problems === undefined ? status : { ...status, errors: problems }, data: null });
}
