/** What the page's policy lets styles in by; the server writes it into the page. Empty under a development server. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
}
