const SHOWN_AT_END = 4;
const DOTS = '•'.repeat(16);

/** `rhu_••••••••••••••••3kQz`: enough to tell one from another. */
export function maskedKey(key: string): string {
  const prefix = /^[a-z]+_/.exec(key)?.[0] ?? '';
  return `${prefix}${DOTS}${key.slice(-SHOWN_AT_END)}`;
}
