/** Colours of a terminal that the console shows. Each has a class with enough contrast in both colour schemes. */
export const ANSI_COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

export type AnsiColor = (typeof ANSI_COLORS)[number];

/** A part of a line with one style. */
export interface AnsiSpan {
  text: string;
  color: AnsiColor | null;
  isBold: boolean;
}

export type AnsiLine = AnsiSpan[];

/** Maximum number of parts of a line: the rest has the style of the last one. Each part is an element of the page. */
export const SPANS_PER_LINE_MAX = 200;

type Style = Omit<AnsiSpan, 'text'>;

const PLAIN: Style = { color: null, isBold: false };

// Control sequences (their final byte is captured), operating system commands, and other escape sequences.
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character
const ESCAPES = /\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: other control characters have no form in HTML
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/**
 * Parses the lines of a log with their colours. Colours of the background, beyond the eight, and other sequences are
 * dropped. Of a line that a progress bar has overwritten, only the last version remains.
 */
export function parseAnsi(text: string): AnsiLine[] {
  let style = PLAIN;
  const lines = text.split('\n').map((line) => {
    const spans = parseLine(afterOverwrite(line), style);
    style = spans.style;
    return spans.line;
  });
  // A text that ends with a line end has no further line.
  return lines.at(-1)?.length === 0 ? lines.slice(0, -1) : lines;
}

export function lineText(line: AnsiLine): string {
  return line.map(({ text }) => text).join('');
}

function afterOverwrite(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === '\r') end -= 1;
  const withoutEnd = line.slice(0, end);
  return withoutEnd.slice(withoutEnd.lastIndexOf('\r') + 1);
}

function parseLine(text: string, initial: Style): { line: AnsiLine; style: Style } {
  const line: AnsiLine = [];
  let style = initial;
  let start = 0;
  const add = (end: number) => {
    const part = text.slice(start, end).replace(CONTROLS, '');
    const last = line.at(-1);
    if (last !== undefined && line.length === SPANS_PER_LINE_MAX) last.text += part;
    else if (part !== '') line.push({ text: part, ...style });
  };
  for (const match of text.matchAll(ESCAPES)) {
    add(match.index);
    start = match.index + match[0].length;
    if (match[2] === 'm') style = applyCodes(style, match[1] ?? '');
  }
  add(text.length);
  return { line, style };
}

/** Applies the codes of a sequence that selects a graphic rendition. */
function applyCodes(initial: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  let style = initial;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 38 || code === 48) {
      const isIndexed = codes[index + 1] === 5;
      if (code === 38) style = { ...style, color: isIndexed ? colorOf(codes[index + 2]) : null };
      index += isIndexed ? 2 : 4;
    } else style = applyCode(style, code);
  }
  return style;
}

function applyCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, isBold: true };
  if (code === 22) return { ...style, isBold: false };
  if (code === 39) return { ...style, color: null };
  if (code >= 30 && code <= 37) return { ...style, color: colorOf(code - 30) };
  if (code >= 90 && code <= 97) return { ...style, color: colorOf(code - 90) };
  return style;
}

/** Returns the colour of an index of the palette; null beyond the eight colours and their bright forms. */
function colorOf(index: number | undefined): AnsiColor | null {
  return index === undefined || index > 15 ? null : (ANSI_COLORS[index % ANSI_COLORS.length] ?? null);
}
