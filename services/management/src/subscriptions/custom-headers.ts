import {
  HEADER_LIMITS,
  HEADER_NAME,
  HEADER_VALUE,
  headerBytes,
  MASK,
  type Problem,
  SIGNATURE_HEADER,
  type SubscriptionFields,
} from '@runhook/contract';
import { type SecretBox, SecretBoxError } from '@runhook/database';
import { InvalidRequestError } from '../http/errors.ts';
import type { Schema } from '../http/openapi/field-schemas.ts';

/** Columns of a subscription for the headers of its deliveries. */
export interface HeaderColumns {
  /** Null means `Authorization`. */
  signatureHeader: string | null;
  headerNames: string[];
  headersCiphertext: string | null;
}

type StoredHeaders = HeaderColumns & { clientUrl: string };
type RequestedHeaders = Pick<SubscriptionFields, 'client_url' | 'headers' | 'signature_header'>;

/** Headers by name. A schema cannot express that names differ in more than case, and which names are reserved. */
export const CUSTOM_HEADERS: Schema = {
  type: ['object', 'null'],
  propertyNames: { type: 'string', maxLength: HEADER_LIMITS.nameCharactersMax, pattern: HEADER_NAME.source },
  additionalProperties: {
    type: 'string',
    minLength: 1,
    maxLength: HEADER_LIMITS.valueCharactersMax,
    pattern: HEADER_VALUE.source,
  },
  maxProperties: HEADER_LIMITS.headersMax,
};

const NO_HEADERS: HeaderColumns = { signatureHeader: null, headerNames: [], headersCiphertext: null };
export const NEW_ORIGIN_PROBLEM =
  'must be supplied again if client_url changes to another server, because stored values must not be sent elsewhere';
export const NOT_STORED_PROBLEM = `must have a value: ${MASK} stands for one that is stored, and none is`;
const TOO_LARGE_PROBLEM = `must not take more than ${HEADER_LIMITS.totalBytesMax} bytes in total: names, values, and 4 bytes for the separators of each`;
const SIGNATURE_HEADER_PROBLEM =
  'is the header of the signature: signature_header may name another one for that';

/**
 * Returns the columns after a create or an update (docs/contract.md#headers-of-deliveries): omitted fields keep their
 * value, and so does a header whose value is the mask. Throws a 400 that names each invalid header.
 * @param stored null on a create
 */
export function headerColumns(
  requested: RequestedHeaders,
  stored: StoredHeaders | null,
  secrets: SecretBox,
): HeaderColumns {
  const { signature_header: signatureHeader = stored?.signatureHeader ?? null } = requested;
  const hasNewOrigin = isNewOrigin(requested.client_url, stored);
  const problems: Problem[] = [];
  const reject = (field: string, problem: string) => problems.push({ field, message: `${field} ${problem}` });

  function retainStoredHeaders(): Pick<HeaderColumns, 'headerNames' | 'headersCiphertext'> {
    const { headerNames, headersCiphertext } = stored ?? NO_HEADERS;
    if (headersCiphertext !== null && hasNewOrigin) reject('headers', NEW_ORIGIN_PROBLEM);
    return { headerNames, headersCiphertext };
  }

  function replaceHeaders(headers: Record<string, string>) {
    const storedByName = Object.values(headers).includes(MASK)
      ? decryptStoredValues(stored, secrets)
      : new Map();
    const values = Object.entries(headers).map(([name, value]): [string, string] => {
      if (value !== MASK) return [name, value];
      const storedValue = storedByName.get(name.toLowerCase());
      if (storedValue === undefined) reject(`headers.${name}`, NOT_STORED_PROBLEM);
      else if (hasNewOrigin) reject(`headers.${name}`, NEW_ORIGIN_PROBLEM);
      return [name, storedValue ?? ''];
    });
    if (values.length === 0) return { headerNames: [], headersCiphertext: null };
    const names = values.map(([name]) => name);
    // All values are masks, so the stored headers have not changed.
    const isUnchanged = Object.values(headers).every((value) => value === MASK);
    if (stored && isUnchanged && names.join() === stored.headerNames.join()) return retainStoredHeaders();
    const newHeaders = Object.fromEntries(values);
    if (headerBytes(newHeaders) > HEADER_LIMITS.totalBytesMax) reject('headers', TOO_LARGE_PROBLEM);
    const headersCiphertext = secrets.encrypt(JSON.stringify(newHeaders));
    return { headerNames: names, headersCiphertext };
  }

  const columns =
    requested.headers === undefined ? retainStoredHeaders() : replaceHeaders(requested.headers ?? {});
  const signatureName = (signatureHeader ?? SIGNATURE_HEADER).toLowerCase();
  for (const name of columns.headerNames)
    if (name.toLowerCase() === signatureName) reject(`headers.${name}`, SIGNATURE_HEADER_PROBLEM);
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { signatureHeader, ...columns };
}

/** Returns values by name in lower case; none if they cannot be decrypted. */
function decryptStoredValues(stored: StoredHeaders | null, secrets: SecretBox): Map<string, string> {
  try {
    const headers = decryptCustomHeaders(stored ?? NO_HEADERS, secrets);
    return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  } catch (error) {
    if (error instanceof SecretBoxError) return new Map();
    throw error;
  }
}

/** Returns the custom headers of a delivery. Throws a `SecretBoxError` if they cannot be decrypted. */
export function decryptCustomHeaders(
  { headersCiphertext }: Pick<HeaderColumns, 'headersCiphertext'>,
  secrets: SecretBox,
): Record<string, string> {
  return headersCiphertext === null ? {} : JSON.parse(secrets.decrypt(headersCiphertext));
}

/**
 * Whether an update would let deliveries send stored values to another server. Nothing is sent without an endpoint, but
 * one that replaces an empty URL is new, because the server before it is no longer known.
 */
export function isNewOrigin(clientUrl: string, stored: { clientUrl: string } | null): boolean {
  return stored !== null && clientUrl !== '' && originOf(clientUrl) !== originOf(stored.clientUrl);
}

/** Returns scheme, host and port. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
