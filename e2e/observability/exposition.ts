/** One sample in Prometheus' text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** @throws if a line is invalid */
export function parseExposition(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = LINE.exec(line) ?? [];
      if (name === undefined) throw new SyntaxError(`not a sample: ${line}`);
      const pairs = [...labels.matchAll(LABEL)].map(([, label, content]) => [label, content]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

/** Maps names to types, from the `# TYPE` lines. */
export function typesOf(text: string): Map<string, string> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Map(types.map(([, name, type]) => [name as string, type as string]));
}
