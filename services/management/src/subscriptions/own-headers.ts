import { MASK, type Problem, SIGNATURE_HEADER, type SubscriptionFields } from '@runhook/contract';
import { type SecretBox, SecretBoxError } from '@runhook/database';
import { InvalidRequestError } from '../http/errors.ts';

/** The columns of a subscription about the headers of its deliveries. */
export interface HeaderColumns {
  /** Null: `Authorization`. */
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
 * What a create or an update makes of them (docs/contract.md#headers-of-deliveries): what is left out stays, and so does
 * the value of a name that is given with the mask, as answers have it. Throws a 400 that names each header in the way.
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
    // All of them stay: so does what is stored, and nothing has changed.
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

/** By name in lower case; none that cannot be decrypted any more. */
function storedValues(stored: Stored | null, secrets: SecretBox): Map<string, string> {
  try {
    const headers = ownHeadersOf(stored ?? NONE, secrets);
    return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  } catch (error) {
    if (error instanceof SecretBoxError) return new Map();
    throw error;
  }
}

/** As a delivery sends them. Throws a `SecretBoxError` when they do not decrypt. */
export function ownHeadersOf(
  { headersCiphertext }: Pick<HeaderColumns, 'headersCiphertext'>,
  secrets: SecretBox,
): Record<string, string> {
  return headersCiphertext === null ? {} : JSON.parse(secrets.decrypt(headersCiphertext));
}

/** Scheme, host and port. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
