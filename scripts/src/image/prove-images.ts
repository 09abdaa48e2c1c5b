import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { findFreePort } from '@runhook/embedded';
import { inspectImage } from './image-contents.ts';
import type { Isolation } from './isolated-process.ts';
import { type Image, type ImageRun, runImage, startArguments, startImage } from './start-images.ts';

export interface Proof {
  isolation: Isolation;
  /** The node that stands for the one of the base image. */
  node: string;
  databaseUrl: string;
  queueUrl: string;
  say(line: string): void;
}

const BYTES_PER_MB = 1_048_576;

/** Looks at the files of each image, then runs them together as a release would; throws at the first thing amiss. */
export async function proveImages(images: readonly Image[], proof: Proof): Promise<void> {
  for (const image of images) proveContents(image, proof);
  const environment = {
    DATABASE_URL: proof.databaseUrl,
    QUEUE_URL: proof.queueUrl,
    ENCRYPTION_KEYS: `proof:${randomBytes(32).toString('base64')}`,
    LOG_LEVEL: 'info',
  };
  for (const image of images.filter(({ name }) => name === 'migrate'))
    await proveMigrate(image, proof, environment);
  for (const image of images.filter(({ name }) => name !== 'migrate'))
    await proveService(image, proof, environment);
}

function proveContents({ name, folder }: Image, { say }: Proof): void {
  const { files, bytes, packages, findings } = inspectImage(folder, name);
  if (findings.length > 0) throw new Error(`${name}:\n  ${findings.join('\n  ')}`);
  const megabytes = (bytes / BYTES_PER_MB).toFixed(1);
  say(
    `${name}: ${megabytes} MB on top of the base image, ${files} files, ${packages.length} packages, nothing else`,
  );
}

async function proveMigrate(image: Image, proof: Proof, environment: Record<string, string>): Promise<void> {
  const run = { isolation: proof.isolation, node: proof.node, environment };
  const args = argumentsOf(image, proof);
  const outputs = await Promise.all([runImage(image, run, args), runImage(image, run, args)]);
  if (!outputs.some((output) => output.includes('migrations applied')))
    throw new Error(`migrate applied nothing:\n${outputs.join('\n')}`);
  const again = await runImage(image, run, args);
  if (!again.includes('the schema was up to date')) throw new Error(`migrate is not done:\n${again}`);
  proof.say('migrate: two at once took turns, a third found nothing to do, each exited with 0');
}

async function proveService(image: Image, proof: Proof, environment: Record<string, string>): Promise<void> {
  const { port } = await findFreePort();
  const run: ImageRun = {
    isolation: proof.isolation,
    node: proof.node,
    environment: { ...environment, PORT: String(port) },
  };
  const args = argumentsOf(image, proof);
  const program = await startImage(image, run, args);
  try {
    if (image.stage.healthcheck === null) throw new Error(`${image.name} has no health check`);
    const [, ...check] = image.stage.healthcheck;
    await runImage(image, run, check);
    if (image.name === 'management') {
      await proveAdmin(image, run);
      await proveConsole(run);
    }
  } finally {
    program.terminate();
  }
  const code = await program.exited;
  if (code !== 0) throw new Error(`${image.name} exited with ${code} on SIGTERM:\n${program.output()}`);
  proof.say(`${image.name}: ready, healthy by its own HEALTHCHECK, exited with 0 on SIGTERM`);
}

/** Bundled files are easily left behind: without them everything else would still be well. */
async function proveConsole({ environment }: ImageRun): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${environment.PORT}/`);
  const page = await answer.text();
  const [, script] = /<script[^>]* src="([^"]+)"/.exec(page) ?? [];
  const asset = script === undefined ? null : await fetch(new URL(script, answer.url));
  if (!asset?.ok) throw new Error(`the console is not served: ${answer.status}\n${page.slice(0, 500)}`);
}

async function proveAdmin(image: Image, run: ImageRun): Promise<void> {
  const answer = await runImage(image, run, ['dist/admin/main.js', 'account', 'list', '--json']);
  if (!Array.isArray(JSON.parse(answer))) throw new Error(`the operators' commands answered:\n${answer}`);
}

function argumentsOf(image: Image, { node, say }: Proof): string[] {
  return startArguments(image, {
    knowsFlag: (flag) => spawnSync(node, [flag, '-e', '']).status === 0,
    onLeftOut: (flag) => say(`${image.name}: ${flag} left out, this node does not know it`),
  });
}
