import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { findFreePort } from '@runhook/embedded';
import { isHealthy } from '../service.ts';
import type { Buildah } from './buildah.ts';
import { type Container, type Program, startProgram } from './container.ts';

export interface Proof {
  buildah: Buildah;
  databaseUrl: string;
  queueUrl: string;
  /** Ends the current step when it is aborted. */
  signal: AbortSignal;
  say(line: string): void;
}

type Environment = Record<string, string>;

const LIST_ACCOUNTS = ['dist/admin.js', 'account', 'list', '--json'];
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
const NO_CAPABILITIES = /^0+$/;

/** Runs the images together as a deployment would. Throws at the first failure. */
export async function proveImages(containers: Record<string, Container>, proof: Proof): Promise<void> {
  const { migrate, ...services } = containers;
  const urlOf = (service: string) =>
    Object.assign(new URL(proof.databaseUrl), { username: `runhook_${service}`, password: service }).href;
  const environment = {
    // Without a user, a queue in PostgreSQL has the login of each DATABASE_URL.
    QUEUE_URL: proof.queueUrl.replace(/^postgres:\/\/[^@]*@/, 'postgres://'),
    ENCRYPTION_KEYS: `proof:${randomBytes(32).toString('base64')}`,
    LOG_LEVEL: 'info',
  };
  if (migrate !== undefined)
    await proveMigrate(migrate, proof, {
      ...environment,
      DATABASE_URL: proof.databaseUrl,
      MANAGEMENT_DATABASE_URL: urlOf('management'),
      DISPATCHER_DATABASE_URL: urlOf('dispatcher'),
    });
  for (const [name, container] of Object.entries(services))
    await proveService(name, container, proof, { ...environment, DATABASE_URL: urlOf(name) });
}

async function proveMigrate(container: Container, proof: Proof, environment: Environment): Promise<void> {
  const runs = await Promise.all([run(container, proof, environment), run(container, proof, environment)]);
  if (!runs.some((output) => output.includes('migrations applied')))
    throw new Error(`migrate applied nothing:\n${runs.join('\n')}`);
  const secondRun = await run(container, proof, environment);
  if (!secondRun.includes('the schema is up to date'))
    throw new Error(`migrate is not finished:\n${secondRun}`);
  proof.say(
    'migrate: two concurrent runs waited for each other, a third had nothing to do, and each exited with 0',
  );
}

async function proveService(
  name: string,
  container: Container,
  proof: Proof,
  shared: Environment,
): Promise<void> {
  const { port } = await findFreePort();
  const environment = { ...shared, PORT: String(port), OPERATIONS_PORT: '0' };
  const url = `http://127.0.0.1:${port}`;
  const program = startProgram(container, proof.buildah, environment);
  try {
    await waitUntilReady(name, program, url, proof.signal);
    const owner = proveOwner(name, container, program);
    const [kind, , ...check] = container.config.Healthcheck?.Test ?? [];
    if (kind !== 'CMD') throw new Error(`${name} has no health check in exec form`);
    await run(container, proof, environment, check);
    if (name === 'management') {
      const accounts = await run(container, proof, environment, LIST_ACCOUNTS);
      if (!Array.isArray(JSON.parse(accounts)))
        throw new Error(`the operators' commands printed:\n${accounts}`);
      await proveConsole(url);
    }
    process.kill(owner.pid, 'SIGTERM');
    const code = await program.exited;
    if (code !== 0) throw new Error(`${name} exited with ${code} on SIGTERM:\n${program.output()}`);
    proof.say(
      `${name}: as ${owner.uid}:${owner.gid} without capabilities or write access: ready, ` +
        'healthy by its HEALTHCHECK, exited with 0 on SIGTERM',
    );
  } finally {
    program.kill();
  }
}

function proveOwner(name: string, { config }: Container, program: Program) {
  const owner = program.find();
  if (owner === null) throw new Error(`${name}: no process of user ${config.User}`);
  if (`${owner.uid}:${owner.gid}` !== config.User || !NO_CAPABILITIES.test(owner.capabilities))
    throw new Error(`${name} runs as ${owner.uid}:${owner.gid} with the capabilities ${owner.capabilities}`);
  return owner;
}

/** Checks that the console is served, because the image would pass all other checks without its files. */
async function proveConsole(url: string): Promise<void> {
  const response = await fetch(url);
  const page = await response.text();
  const [, script] = /<script[^>]* src="([^"]+)"/.exec(page) ?? [];
  const asset = script === undefined ? null : await fetch(new URL(script, response.url));
  if (!asset?.ok) throw new Error(`the console is not served: ${response.status}\n${page.slice(0, 500)}`);
}

/** Runs the image and returns its output. Throws unless it exits with 0. */
async function run(
  container: Container,
  { buildah, signal }: Proof,
  environment: Environment,
  args?: readonly string[],
): Promise<string> {
  signal.throwIfAborted();
  const program = startProgram(container, buildah, environment, args);
  signal.addEventListener('abort', program.kill);
  const code = await program.exited;
  signal.removeEventListener('abort', program.kill);
  if (code !== 0)
    throw new Error(`${container.name} exited with ${code}:
${program.output()}`);
  return program.output();
}

async function waitUntilReady(
  name: string,
  program: Program,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await isHealthy(`${url}/readyz`))) {
    signal.throwIfAborted();
    if (program.hasExited() || Date.now() > deadline)
      throw new Error(`${name} did not become ready:\n${program.output()}`);
    await wait(POLL_MS);
  }
}
