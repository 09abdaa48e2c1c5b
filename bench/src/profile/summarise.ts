/** The parts of a .cpuprofile that are read here. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

export interface Share {
  name: string;
  /** Of the time that the process was busy, 0 to 1. */
  share: number;
  microsPerDelivery: number;
}

export interface ProfileSummary {
  busyShare: number;
  parts: Share[];
  hottest: { name: string; share: number }[];
}

type Node = CpuProfile['nodes'][number];

const HOTTEST = 40;
const OURS = /\/(services\/dispatcher|packages\/(contract|database|egress|queue|runtime))\//;

/**
 * What each part of the process took. Node's own JavaScript is charged to whoever called it, as far as that shows in
 * the stack; what the event loop calls by itself (sockets, the HTTP parser) is node's.
 */
export function summarise(profile: CpuProfile, deliveries: number): ProfileSummary {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map<number, Node>();
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node);
  const partOfNode = new Map<number, string>();
  const microsByPart = new Map<string, number>();
  const microsByFunction = new Map<string, number>();
  const add = (sums: Map<string, number>, key: string, micros: number) =>
    sums.set(key, (sums.get(key) ?? 0) + micros);
  let totalMicros = 0;
  let idleMicros = 0;
  profile.samples.forEach((id, index) => {
    const node = nodes.get(id) as Node;
    const micros = profile.timeDeltas[index] ?? 0;
    totalMicros += micros;
    if (node.callFrame.functionName === '(idle)') {
      idleMicros += micros;
      return;
    }
    const part = partOfNode.get(id) ?? partOf(node, parents);
    partOfNode.set(id, part);
    add(microsByPart, part, micros);
    add(microsByFunction, functionName(node), micros);
  });
  const busyMicros = totalMicros - idleMicros;
  const ranked = (sums: Map<string, number>) => [...sums].sort(([, a], [, b]) => b - a);
  return {
    busyShare: busyMicros / totalMicros,
    parts: ranked(microsByPart).map(([name, micros]) => ({
      name,
      share: micros / busyMicros,
      microsPerDelivery: micros / deliveries,
    })),
    hottest: ranked(microsByFunction)
      .slice(0, HOTTEST)
      .map(([name, micros]) => ({ name, share: micros / busyMicros })),
  };
}

function partOf(node: Node, parents: Map<number, Node>): string {
  const { functionName: name } = node.callFrame;
  if (name === '(garbage collector)') return 'garbage collection';
  if (name === '(program)') return 'native code and system calls';
  for (let current: Node | undefined = node; current !== undefined; current = parents.get(current.id)) {
    const part = partOfUrl(current.callFrame.url);
    if (part !== null) return part;
  }
  return /_http|http|net|stream|tty|wrap/.test(node.callFrame.url)
    ? "node's sockets and HTTP"
    : 'node, other';
}

/** Null for node's own files. */
function partOfUrl(url: string): string | null {
  const inModules = url.lastIndexOf('/node_modules/');
  if (inModules >= 0) {
    const [first = '', second = ''] = url.slice(inModules + '/node_modules/'.length).split('/');
    return PART_OF_PACKAGE[first] ?? (first.startsWith('@') ? `${first}/${second}` : first);
  }
  const ours = OURS.exec(url);
  return ours ? `ours: ${ours[1]}` : null;
}

/** Packages that exist for another one count as it. */
const PART_OF_PACKAGE: Record<string, string> = {
  'cacheable-request': 'got',
  'form-data-encoder': 'got',
  responselike: 'got',
  'lowercase-keys': 'got',
  'normalize-url': 'got',
  'get-stream': 'got',
  '@sindresorhus': 'got',
  'byte-counter': 'got',
  'chunk-data': 'got',
  'uint8array-extras': 'got',
  ioredis: 'BullMQ and ioredis',
  bullmq: 'BullMQ and ioredis',
  'redis-parser': 'BullMQ and ioredis',
  '@ioredis': 'BullMQ and ioredis',
  msgpackr: 'BullMQ and ioredis',
  tslib: 'BullMQ and ioredis',
  pg: 'pg',
  'pg-protocol': 'pg',
  'pg-pool': 'pg',
  'pg-types': 'pg',
  'postgres-array': 'pg',
  'postgres-date': 'pg',
  '@hapi': 'joi',
  '@standard-schema': 'joi',
  'sonic-boom': 'pino',
  'pino-std-serializers': 'pino',
  'safe-stable-stringify': 'pino',
};

function functionName({ callFrame: { functionName: name, url, lineNumber } }: Node): string {
  const inModules = url.lastIndexOf('/node_modules/');
  const file =
    inModules >= 0
      ? url.slice(inModules + '/node_modules/'.length)
      : url.replace(/^.*\/(?=(services|packages)\/)/, '');
  return `${name || '(anonymous)'} ${file}:${lineNumber + 1}`;
}
