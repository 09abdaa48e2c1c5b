import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bench, measureCase, type ScenarioResult } from '../bench.ts';
import { createWorkload } from '../world/workload.ts';
import { drain, HEALTHY_ACCOUNTS, warmUp } from './throughput.ts';

const INTERVAL_MICROS = 250;

/** Profiles the dispatcher's CPU while it delivers at its maximum rate. */
export async function profile(bench: Bench): Promise<ScenarioResult> {
  const folder = process.env.BENCH_PROFILE_FOLDER ?? join(tmpdir(), `runhook-profile-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  const world = await bench.openWorld('redis');
  try {
    const flags = ['--cpu-prof', `--cpu-prof-interval=${INTERVAL_MICROS}`, `--cpu-prof-dir=${folder}`];
    await world.setDispatchers(1, flags);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    bench.progress('warming up');
    const events = await warmUp(bench, world, workload);
    const row = await measureCase(
      bench,
      'profile',
      () => drain(world, workload, { events: events * 2, raw: bench.raw }),
      1,
    );
    await world.setDispatchers(0);
    const [file] = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
    const summary = summarise(
      JSON.parse(readFileSync(join(folder, file as string), 'utf8')) as CpuProfile,
      row.ledger.delivered,
    );
    return {
      name: 'profile',
      rows: summary.parts
        .filter(({ share }) => share > 0.02)
        .map(({ name, share }) => ({ ...row, case: name, figures: { percent: share * 100 }, runs: [] })),
      notes: summary.hottest.map(({ name, share }) => `${(share * 100).toFixed(1)} %  ${name}`),
    };
  } finally {
    await world.close();
  }
}

/** The fields of a .cpuprofile that are used here. */
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
  /** Share of the busy time of the process, 0 to 1. */
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
 * Sums the time of each part of the process. Node's own JavaScript is charged to its caller in the stack; calls from
 * the event loop itself (sockets, the HTTP parser) are charged to Node.
 */
export function summarise(profile: CpuProfile, deliveries: number): ProfileSummary {
  const modules = new BundledModules();
  const nodes = new Map(profile.nodes.map((node) => [node.id, modules.locate(node)]));
  const parents = new Map<number, Node>();
  for (const node of nodes.values()) for (const child of node.children ?? []) parents.set(child, node);
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
    const part = partOfNode.get(id) ?? classifyNode(node, parents);
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

/**
 * Maps positions in a service's bundle to modules. A comment before each module in the bundle names it
 * (docs/adr/0056-service-bundle.md).
 */
class BundledModules {
  /** Lines at which modules begin, by file. */
  readonly #moduleStarts = new Map<string, { line: number; path: string }[]>();

  /** Returns the node with the module, and the line in it, instead of those of the bundle. */
  locate(node: Node): Node {
    const { url, lineNumber } = node.callFrame;
    const module = this.#readModuleStarts(url).findLast(({ line }) => line <= lineNumber);
    if (module === undefined) return node;
    const callFrame = { ...node.callFrame, url: `/${module.path}`, lineNumber: lineNumber - module.line - 1 };
    return { ...node, callFrame };
  }

  #readModuleStarts(url: string) {
    const cached = this.#moduleStarts.get(url);
    if (cached) return cached;
    const lines = BUNDLE.test(url) ? readFileSync(fileURLToPath(url), 'utf8').split('\n') : [];
    const starts = lines.flatMap((text, line) => {
      const path = MODULE.exec(text)?.[1];
      return path === undefined ? [] : [{ line, path }];
    });
    this.#moduleStarts.set(url, starts);
    return starts;
  }
}

const BUNDLE = /^file:.*\/bundle[^/]*\.js$/;
const MODULE = /^\/\/ ((?:node_modules|packages|services)\/\S+\.[cm]?js)$/;

function classifyNode(node: Node, parents: Map<number, Node>): string {
  const { functionName: name } = node.callFrame;
  if (name === '(garbage collector)') return 'garbage collection';
  if (name === '(program)') return 'native code and system calls';
  for (let current: Node | undefined = node; current !== undefined; current = parents.get(current.id)) {
    const part = partOfUrl(current.callFrame.url);
    if (part !== null) return part;
  }
  return /_http|http|net|stream|tty|wrap/.test(node.callFrame.url)
    ? "Node's sockets and HTTP"
    : 'Node, other';
}

/** Returns null for Node's own files. */
function partOfUrl(url: string): string | null {
  const inModules = url.lastIndexOf('/node_modules/');
  if (inModules >= 0) {
    const [first = '', second = ''] = url.slice(inModules + '/node_modules/'.length).split('/');
    return PART_OF_PACKAGE[first] ?? (first.startsWith('@') ? `${first}/${second}` : first);
  }
  const ownModule = OURS.exec(url);
  return ownModule ? `Runhook: ${ownModule[1]}` : null;
}

/** Packages that are only used by another one are counted as part of it. */
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
