const NAME = 'runhook-account';

/** The account that this browser looked at last, or null. */
export function rememberedAccountId(): number | null {
  try {
    const text = localStorage.getItem(NAME);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

/** A browser that keeps nothing starts with the first account the next time. */
export function rememberAccountId(id: number): void {
  try {
    localStorage.setItem(NAME, String(id));
  } catch {}
}
