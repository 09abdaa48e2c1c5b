import type { LimitResult } from '../http/limits.ts';

/** Bounds the cost of sign-ins, which anyone may begin. */
export interface ExchangeSlots {
  /** Counts a call of the client; false if it has too many. */
  count(clientAddress: string): Promise<boolean>;
  /** Removes the two calls of a successful sign-in, since many users may share an address. */
  refund(clientAddress: string): Promise<void>;
  /** Returns the function that releases the slot; null if too many codes are being exchanged. */
  acquire(): (() => void) | null;
}

/** Number of codes that a process exchanges at once. Each takes a request to the provider, or two. */
const EXCHANGES_MAX = 32;

/** @param limiter of one client; @param networkOf returns the client of an address */
export function createExchangeSlots(
  limiter: { consume(key: string): Promise<LimitResult>; refund(key: string): Promise<void> },
  networkOf: (address: string) => string,
): ExchangeSlots {
  let inFlight = 0;
  return {
    count: async (address) => (await limiter.consume(networkOf(address))).kind === 'accepted',
    async refund(address) {
      await limiter.refund(networkOf(address));
      await limiter.refund(networkOf(address));
    },
    acquire() {
      if (inFlight >= EXCHANGES_MAX) return null;
      inFlight += 1;
      return () => {
        inFlight -= 1;
      };
    },
  };
}

/**
 * Returns a page that opens the address. A redirect would not do: the browser follows it as a part of the navigation
 * from the provider, and sends no `Strict` cookie with it.
 */
export function openingPage(url: string): { html: string; contentSecurityPolicy: string } {
  const escaped = url.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return {
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=${escaped}">
<title>Runhook</title>
</head>
<body><p>You are signed in. <a href="${escaped}">Open Runhook</a></p></body>
</html>
`,
    contentSecurityPolicy: "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  };
}
