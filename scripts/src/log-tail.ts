import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';

const TAIL_BYTES = 16_384;

/** The last lines of a log, as text for people: of a JSON line its message, and its error's. None when it is gone. */
export function lastLogLines(file: string, count: number): string[] {
  const lines = readTail(file)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.slice(-count).map(readable);
}

function readTail(file: string): string {
  if (!existsSync(file)) return '';
  const descriptor = openSync(file, 'r');
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8');
  } finally {
    closeSync(descriptor);
  }
}

function readable(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line) as {
      level?: string;
      msg?: string;
      err?: { message?: string };
    };
    if (msg === undefined) return line;
    return [level, msg, err?.message].filter((part) => part !== undefined).join(': ');
  } catch {
    return line;
  }
}
