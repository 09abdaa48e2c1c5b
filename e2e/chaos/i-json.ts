import { hasInvalidText } from '@runhook/contract';

/** Returns why a body is not I-JSON (RFC 7493) in the format of JSON.stringify, or null if it is. */
export function iJsonProblem(body: string): string | null {
  let problem: string | null = null;
  const value: unknown = JSON.parse(body, (key, member) => {
    if (hasInvalidText(key) || (typeof member === 'string' && hasInvalidText(member)))
      problem = `${key} has an invalid character`;
    if (typeof member === 'number' && !Number.isSafeInteger(member)) problem = `${key} is not exact`;
    return member;
  });
  // Repeated keys, -0 and numbers with more digits than a double has do not survive the round trip.
  return problem ?? (JSON.stringify(value) === body ? null : 'the body does not survive a round trip');
}
