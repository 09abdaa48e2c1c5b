const numberFormat = new Intl.NumberFormat();

export function newWords(count: number): string {
  return count === 1 ? '1 new delivery' : `${numberFormat.format(count)} new deliveries`;
}

/** Those that came but are not among what the page lists. */
export function elsewhereWords(count: number, isFirstPage: boolean): string {
  const words = newWords(count);
  if (!isFirstPage) return `${words} since you left the first page.`;
  return count === 1 ? `${words} does not match the filters.` : `${words} do not match the filters.`;
}
