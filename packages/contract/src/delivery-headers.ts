import Joi from 'joi';
import { SIGNATURE_HEADER } from './signatures.ts';

/** Limits of the custom headers of a subscription (docs/contract.md#headers-of-deliveries). */
export const HEADER_LIMITS = {
  headersMax: 10,
  nameCharactersMax: 64,
  valueCharactersMax: 2_048,
  /** Names, values and separators: Node, like most servers, rejects a request whose head has more than 16 KiB. */
  totalBytesMax: 8_192,
} as const;

const SEPARATORS = ': \r\n';

/** Returns the bytes that the headers take in a request. */
export function headerBytes(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length + SEPARATORS.length,
    0,
  );
}

/** Replaces a secret value in the log and in API responses; in an API request it stands for the stored value. */
export const MASK = '***';

/** Headers that users cannot set, because Runhook, HTTP or proxies do, or because they carry state between requests. */
const RESERVED_NAMES = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'keep-alive',
  'set-cookie',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
  'x-real-ip',
]);
const RESERVED_PREFIXES = ['proxy-', 'webhook-', 'x-forwarded-'];

function isReserved(name: string): boolean {
  const lower = name.toLowerCase();
  return RESERVED_NAMES.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** A token of HTTP that begins with a letter or a digit, which excludes the object property `__proto__`. */
export const HEADER_NAME = /^[0-9A-Za-z][!#$%&'*+.^_`|~0-9A-Za-z-]*$/;
/** Matches a header value: printable ASCII without a space at either end, because HTTP strips such spaces. */
export const HEADER_VALUE = /^[!-~]([ -~]*[!-~])?$/;

/** Completes a sentence such as "signature_header …"; null if the name is valid. */
function nameProblem(name: string): string | null {
  if (name.length > HEADER_LIMITS.nameCharactersMax || !HEADER_NAME.test(name))
    return `is not a header name. Header names have 1 to ${HEADER_LIMITS.nameCharactersMax} letters, digits or symbols, without spaces, and begin with a letter or digit`;
  return isReserved(name) ? `is reserved. You cannot set the ${name} header` : null;
}

/** Parses null and the default header in any capitalization to null. Undefined if the field is absent. */
export const signatureHeaderSchema = Joi.any().custom((value: unknown, helpers) => {
  if (value === null) return null;
  if (typeof value !== 'string') return helpers.message({ custom: '{{#label}} must be a string' });
  if (value.toLowerCase() === SIGNATURE_HEADER.toLowerCase()) return null;
  const problem = nameProblem(value);
  return problem === null ? value : helpers.message({ custom: `{{#label}} ${problem}` });
});

const headerValue = Joi.any().custom((value: unknown, helpers) => {
  const problem =
    nameProblem(String(helpers.state.path?.at(-1))) ??
    (typeof value === 'string' && value.length <= HEADER_LIMITS.valueCharactersMax && HEADER_VALUE.test(value)
      ? null
      : `must be a string of 1 to ${HEADER_LIMITS.valueCharactersMax} printable ASCII characters, with no space at its ends`);
  return problem === null ? value : helpers.message({ custom: `{{#label}} ${problem}` });
});

/** Null or empty removes all headers; undefined if the field is absent. */
export const headersSchema = Joi.object()
  .pattern(/^/, headerValue)
  .max(HEADER_LIMITS.headersMax)
  .allow(null)
  .custom((headers: Record<string, string>, helpers) => {
    const names = Object.keys(headers).map((name) => name.toLowerCase());
    const repeated = names.find((name, index) => names.indexOf(name) !== index);
    if (repeated === undefined) return headers;
    return helpers.message({ custom: `{{#label}} must not have ${repeated} twice` });
  })
  .messages({ 'object.max': `{{#label}} must not contain more than ${HEADER_LIMITS.headersMax}` });
