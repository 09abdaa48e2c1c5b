import express, { type Request, type Response } from 'express';
import { UnsupportedContentTypeError } from './errors.ts';

/** A run's status message may have 65,536 characters, each up to six bytes in JSON. */
export const BODY_BYTES_MAX = 1024 * 1024;

const parseJson = express.json({ limit: BODY_BYTES_MAX, strict: false });

/** The JSON body of a POST or PUT; undefined when there is none. Rejects with what the error mapper knows. */
export async function readBody(request: Request, response: Response): Promise<unknown> {
  if (request.method !== 'POST' && request.method !== 'PUT') return undefined;
  if (!hasBody(request)) return undefined;
  if (!request.is('application/json')) throw new UnsupportedContentTypeError();
  await new Promise<void>((resolve, reject) => {
    parseJson(request, response, (error?: unknown) => (error ? reject(error) : resolve()));
  });
  return request.body;
}

function hasBody(request: Request): boolean {
  return request.get('transfer-encoding') !== undefined || Number(request.get('content-length') ?? 0) > 0;
}
