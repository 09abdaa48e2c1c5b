import { Router } from 'express';
import { MethodNotAllowedError } from './errors.ts';
import { requestState } from './request-telemetry.ts';

const PATH = '/.well-known/security.txt';
const ALLOWED_METHODS = ['GET', 'HEAD'];
/** Validity of the file from the time of the request; RFC 9116 recommends less than a year. */
const VALID_DAYS = 180;
const DAY_MS = 86_400_000;

/** Serves the contacts for reports of weaknesses (RFC 9116); without any, the path is a 404. */
export function securityTxtRoutes(contacts: readonly string[]): Router {
  const router = Router({ caseSensitive: true });
  if (contacts.length === 0) return router;
  router.all(PATH, (request, response) => {
    requestState(response).route = PATH;
    if (!ALLOWED_METHODS.includes(request.method))
      throw new MethodNotAllowedError(request.method, ALLOWED_METHODS);
    const expires = new Date(Date.now() + VALID_DAYS * DAY_MS).toISOString();
    const lines = [...contacts.map((contact) => `Contact: ${contact}`), `Expires: ${expires}`];
    response
      .set('cache-control', 'no-cache')
      .type('text/plain')
      .send(`${lines.join('\n')}\n`);
  });
  return router;
}

/**
 * Parses a list of `mailto:`, `https:` and `tel:` URIs, separated by commas.
 * @throws Error that names the item if it is none of them
 */
export function parseContacts(text: string): string[] {
  const contacts = text.split(',').map((item) => item.trim());
  return contacts
    .filter((item) => item !== '')
    .map((item) => {
      if (/^(?:mailto:[^\s@]+@[^\s@]+|https:\/\/\S+|tel:\+?[\d-]+)$/.test(item)) return item;
      throw new Error(
        `"${item}" is not a URI such as mailto:security@example.com or https://example.com/report`,
      );
    });
}
