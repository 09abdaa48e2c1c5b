import { setTimeout as wait } from 'node:timers/promises';
import type { Stage } from './dockerfile.ts';
import { type IsolatedProcess, type Isolation, startIsolated } from './isolated-process.ts';

/** A built image: where its files are, and how the Dockerfile starts it. */
export interface Image {
  name: string;
  folder: string;
  stage: Stage;
}

export interface ImageRun {
  isolation: Isolation;
  /** The node that stands for the base image's. */
  node: string;
  environment: Record<string, string>;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** The arguments that the image starts with. Flags that this node does not know are left out, and said. */
export function startArguments(
  image: Image,
  node: { knowsFlag: (flag: string) => boolean; onLeftOut: (flag: string) => void },
) {
  const [, ...words] = [...image.stage.entrypoint, ...image.stage.cmd];
  return words.filter((word) => {
    if (!word.startsWith('--') || node.knowsFlag(word)) return true;
    node.onLeftOut(word);
    return false;
  });
}

/** Runs the image with other arguments than its CMD and answers what it wrote; throws unless it exits with 0. */
export async function runImage(image: Image, run: ImageRun, args: readonly string[]): Promise<string> {
  const program = await start(image, run, args);
  const code = await program.exited;
  if (code !== 0)
    throw new Error(`${image.name} ${args.join(' ')} exited with ${code}:\n${program.output()}`);
  return program.output();
}

/** Starts the image and resolves when it answers `/readyz` with 200; throws when it exits before that. */
export async function startImage(
  image: Image,
  run: ImageRun,
  args: readonly string[],
): Promise<IsolatedProcess> {
  const program = await start(image, run, args);
  let code: number | null | undefined;
  void program.exited.then((exitCode) => {
    code = exitCode;
  });
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await isReady(run))) {
    if (code !== undefined || Date.now() > deadline) {
      program.terminate();
      throw new Error(`${image.name} did not become ready (exit code ${code}):\n${program.output()}`);
    }
    await wait(POLL_MS);
  }
  return program;
}

function start(image: Image, run: ImageRun, args: readonly string[]): Promise<IsolatedProcess> {
  const variables = image.stage.steps.filter((step) => step.kind === 'env');
  const environment = {
    ...Object.fromEntries(variables.map(({ name, value }) => [name, value])),
    ...run.environment,
  };
  return startIsolated(run.isolation, run.node, args, { cwd: image.folder, environment });
}

async function isReady({ environment }: ImageRun): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${environment.PORT}/readyz`, {
      signal: AbortSignal.timeout(2_000),
    });
    return response.ok;
  } catch {
    return false;
  }
}
