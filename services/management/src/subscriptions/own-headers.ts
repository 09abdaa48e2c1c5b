import { MASK, type Problem, SIGNATURE_HEADER, type SubscriptionFields } from '@runhook/contract';
import { type SecretBox, SecretBoxError } from '@runhook/database';
import { InvalidRequestError } from '../http/errors.ts';

/** Columns of a subscription for the headers of its deliveries. */
export interface HeaderColumns {
  /** Null means `Authorization`. */
  signatureHeader: string | null;
  headerNames: string[];
  headersCiphertext: string | null;
}

type Stored = HeaderColumns & { clientUrl: string };
type Asked = Pick<SubscriptionFields, 'client_url' | 'headers' | 'signature_header'>;

const NONE: HeaderColumns = { signatureHeader: null, headerNames: [], headersCiphertext: null };
const ELSEWHERE =
  'must be given anew when client_url moves to another server: values that are not told must not be sent elsewhere';
const NOT_STORED = `must have a value: ${MASK} stands for one that is stored, and none is`;
const OF_THE_SIGNATURE = 'is the header of the signature: signature_header may name another one for that';

/**
 * Returns the columns after a create or an update (docs/contract.md#headers-of-deliveries): omitted fields keep their
 * value, and so does a header whose value is the mask. Throws a 400 that names each invalid header.
 * @param stored null on a create
 */
export function headerColumns(asked: Asked, stored: Stored | null, secrets: SecretBox): HeaderColumns {
  const { signature_header: signatureHeader = stored?.signatureHeader ?? null } = asked;
  const isElsewhere = stored !== null && originOf(asked.client_url) !== originOf(stored.clientUrl);
  const problems: Problem[] = [];
  const refuse = (field: string, problem: string) => problems.push({ field, message: `${field} ${problem}` });

  function stays(): Pick<HeaderColumns, 'headerNames' | 'headersCiphertext'> {
    const { headerNames, headersCiphertext } = stored ?? NONE;
    if (headersCiphertext !== null && isElsewhere) refuse('headers', ELSEWHERE);
    return { headerNames, headersCiphertext };
  }

  function replaced(headers: Record<string, string>) {
    const known = Object.values(headers).includes(MASK) ? storedValues(stored, secrets) : new Map();
    const values = Object.entries(headers).map(([name, value]): [string, string] => {
      if (value !== MASK) return [name, value];
      const kept = known.get(name.toLowerCase());
      if (kept === undefined) refuse(`headers.${name}`, NOT_STORED);
      else if (isElsewhere) refuse(`headers.${name}`, ELSEWHERE);
      return [name, kept ?? ''];
    });
    if (values.length === 0) return { headerNames: [], headersCiphertext: null };
    const names = values.map(([name]) => name);
    // All values are masks, so the stored headers have not changed.
    const isKept = Object.values(headers).every((value) => value === MASK);
    if (stored && isKept && names.join() === stored.headerNames.join()) return stays();
    const headersCiphertext = secrets.encrypt(JSON.stringify(Object.fromEntries(values)));
    return { headerNames: names, headersCiphertext };
  }

  const columns = asked.headers === undefined ? stays() : replaced(asked.headers ?? {});
  const ofSignature = (signatureHeader ?? SIGNATURE_HEADER).toLowerCase();
  for (const name of columns.headerNames)
    if (name.toLowerCase() === ofSignature) refuse(`headers.${name}`, OF_THE_SIGNATURE);
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { signatureHeader, ...columns };
}

/** Returns values by name in lower case; none if they cannot be decrypted. */
function storedValues(stored: Stored | null, secrets: SecretBox): Map<string, string> {
  try {
    const headers = ownHeadersOf(stored ?? NONE, secrets);
    return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  } catch (error) {
    if (error instanceof SecretBoxError) return new Map();
    throw error;
  }
}

/** Returns the headers of a delivery. Throws a `SecretBoxError` if they cannot be decrypted. */
export function ownHeadersOf(
  { headersCiphertext }: Pick<HeaderColumns, 'headersCiphertext'>,
  secrets: SecretBox,
): Record<string, string> {
  return headersCiphertext === null ? {} : JSON.parse(secrets.decrypt(headersCiphertext));
}

/** Returns scheme, host and port. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
