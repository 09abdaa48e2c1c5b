const GAP = '  ';

/** Rows under a heading in aligned columns, without a newline at the end. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heading, ...rows].map((cells) => cells.map(printable));
  const widths = heading.map((_, column) => Math.max(...lines.map((cells) => width(cells[column] ?? ''))));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Names are free text: what would break a line or steer the terminal is shown as an escape. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

function width(text: string): number {
  return [...text].length;
}
