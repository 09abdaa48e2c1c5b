// Text for terminals. Imports nothing, so that command lines can use it without loading the rest of this package.

const GAP = '  ';

/** Returns rows under a heading in aligned columns, without a trailing newline. */
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

/** Escapes characters that would break a line or control the terminal, because names are free text. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

function width(text: string): number {
  return [...text].length;
}

/**
 * Streams with an error listener. writeLine() reports errors to its caller; without a listener they would also end the
 * process.
 */
const observedStreams = new WeakSet<NodeJS.WritableStream>();
const READER_GONE_CODES = new Set(['EPIPE', 'ERR_STREAM_DESTROYED']);

/**
 * Writes the text and a newline; resolves once they are written. A reader that closed the stream (`| head`) is not an
 * error; any other failure rejects with the system's error.
 */
export function writeLine(stream: NodeJS.WritableStream, text: string): Promise<void> {
  if (!observedStreams.has(stream)) stream.on('error', () => undefined);
  observedStreams.add(stream);
  return new Promise((resolve, reject) => {
    stream.write(`${text}\n`, (error?: NodeJS.ErrnoException | null) => {
      if (!error || READER_GONE_CODES.has(error.code ?? '')) resolve();
      else reject(error);
    });
  });
}
