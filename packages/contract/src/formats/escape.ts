const ELLIPSIS = '…';

/**
 * Escapes a text, and truncates the result to `charactersMax` code points, the ellipsis included. Cuts neither a
 * surrogate pair nor an escape sequence.
 * @param escapeCharacter returns the escape sequence of a code point, or the code point itself
 */
export function escapeAndTruncate(
  text: string,
  charactersMax: number,
  escapeCharacter: (character: string) => string = (character) => character,
): string {
  let result = '';
  let length = 0;
  /** Length of `result` up to which an ellipsis can be appended. */
  let endBeforeEllipsis = 0;
  for (const character of text) {
    const escaped = escapeCharacter(character);
    // Escape sequences are ASCII, so their UTF-16 length is that in code points.
    const size = escaped === character ? 1 : escaped.length;
    if (length + size > charactersMax) return result.slice(0, endBeforeEllipsis) + ELLIPSIS;
    result += escaped;
    length += size;
    if (length < charactersMax) endBeforeEllipsis = result.length;
  }
  return result;
}

/** Line breaks, tabs and other characters that would break the line of a name. */
const LINE_BREAKS = /[\p{Cc}\u2028\u2029]+/gu;

/**
 * Characters that reverse or hide the text next to them: a name with one could change how the rest of the message
 * reads.
 */
const BIDIRECTIONAL_CONTROLS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

/** Returns a name on one line, without characters that change the text around it. */
export function onOneLine(text: string): string {
  return text.replace(LINE_BREAKS, ' ').replace(BIDIRECTIONAL_CONTROLS, '');
}

/** Returns a text with several lines, without other control characters or ones that change the text around it. */
export function onLines(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, ' ')
    .replace(BIDIRECTIONAL_CONTROLS, '');
}
