import type { ParsedRequest } from './endpoint.ts';

/** Returns scheme and host under which clients reach this service, without a slash at the end. */
export type BaseUrl = (request: Pick<ParsedRequest, 'origin'>) => string;

/** @param publicUrl the setting `PUBLIC_URL`; without it, links have the host of the request */
export function createBaseUrl(publicUrl: string | undefined): BaseUrl {
  if (publicUrl === undefined) return ({ origin }) => origin;
  const base = publicUrl.replace(/\/+$/, '');
  return () => base;
}
