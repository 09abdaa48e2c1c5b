/** One sample of Prometheus' text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** @throws when a line is none of the format */
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

/** Names with their types as `# TYPE` tells them. */
export function typesOf(text: string): Map<string, string> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Map(types.map(([, name, type]) => [name as string, type as string]));
}
