// Text for people at a terminal. Needs nothing: command lines that load nothing else of this package use it.

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

/** Their error is told to whoever writes; without a listener it would end the process as well. */
const listenedTo = new WeakSet<NodeJS.WritableStream>();
const GONE = new Set(['EPIPE', 'ERR_STREAM_DESTROYED']);

/**
 * Writes the text and a newline; resolves when they are on their way. A reader that left (`| head`) wants no more, which is
 * no error; any other trouble rejects with the system's error.
 */
export function writeLine(stream: NodeJS.WritableStream, text: string): Promise<void> {
  if (!listenedTo.has(stream)) stream.on('error', () => undefined);
  listenedTo.add(stream);
  return new Promise((resolve, reject) => {
    stream.write(`${text}\n`, (error?: NodeJS.ErrnoException | null) => {
      if (!error || GONE.has(error.code ?? '')) resolve();
      else reject(error);
    });
  });
}
