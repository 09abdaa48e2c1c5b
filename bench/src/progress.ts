/** One line on a terminal that is rewritten; elsewhere a line for each step. */
export interface Progress {
  say(what: string, detail: string): void;
  end(): void;
}

export function createProgress(stream: NodeJS.WriteStream): Progress {
  const startMs = performance.now();
  return {
    say(what, detail) {
      const seconds = Math.round((performance.now() - startMs) / 1_000);
      const clock = `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
      const line = `${clock}  ${what}${detail === '' ? '' : `: ${detail}`}`;
      if (stream.isTTY) stream.write(`\r\u001b[2K${line.slice(0, stream.columns - 1)}`);
      else stream.write(`${line}\n`);
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001b[2K');
    },
  };
}
