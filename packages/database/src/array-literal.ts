/** Texts that `JSON.stringify` escapes in another way than PostgreSQL reads: control characters, halves of a pair. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that are meant.
const ESCAPED_OTHERWISE = /[\u0000-\u001f\ud800-\udfff]/;

type Element = string | number | bigint | boolean | null | undefined;

/**
 * The text of a PostgreSQL array. The driver writes the same at several times the cost, by two regular expressions for
 * each element, which counts where a statement carries the columns of 200 rows. Null when an element is of a kind that
 * is the driver's to write.
 */
export function arrayLiteral(items: readonly unknown[]): string | null {
  let text = '{';
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index] as Element;
    if (index > 0) text += ',';
    if (typeof item === 'string') text += quoted(item);
    else if (typeof item === 'number' || typeof item === 'boolean' || typeof item === 'bigint') text += item;
    else if (item === null || item === undefined) text += 'NULL';
    else return null;
  }
  return `${text}}`;
}

function quoted(text: string): string {
  if (!ESCAPED_OTHERWISE.test(text)) return JSON.stringify(text);
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
