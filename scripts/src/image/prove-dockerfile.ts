import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStages, resolveStage } from './dockerfile.ts';
import { findIsolation } from './isolated-process.ts';
import { dockerfileFindings } from './lint-dockerfile.ts';
import { proveImages } from './prove-images.ts';
import { createBuilder } from './run-stages.ts';

const IMAGE_NAMES = ['management', 'dispatcher', 'migrate'] as const;

/** Where the final stages put the service (WORKDIR). */
const IMAGE_FOLDER = 'app';

export interface DockerfileProof {
  checkout: string;
  /** Empty; other accounts must be able to pass through it. */
  workFolder: string;
  node: string;
  databaseUrl: string;
  queueUrl: string;
  environment: NodeJS.ProcessEnv;
  say(line: string): void;
}

/** Lints the Dockerfile, executes its steps in empty folders, and runs what the final stages hold. */
export async function proveDockerfile(options: DockerfileProof): Promise<void> {
  const { checkout, workFolder, say } = options;
  const text = readFileSync(join(checkout, 'Dockerfile'), 'utf8');
  const findings = dockerfileFindings(text, IMAGE_NAMES);
  if (findings.length > 0) throw new Error(`Dockerfile:\n  ${findings.join('\n  ')}`);
  say('Dockerfile: no finding');

  const stages = readStages(text);
  const builder = createBuilder({
    checkout,
    workFolder,
    stages,
    environment: options.environment,
    onStep: say,
  });
  const images = IMAGE_NAMES.map((name) => {
    const folder = join(builder.rootOf(name), IMAGE_FOLDER);
    chmodSync(builder.rootOf(name), 0o755);
    return { name, folder, stage: resolveStage(stages, name) };
  });
  const isolation = findIsolation();
  say(`started as ${isolation.description}`);
  await proveImages(images, { ...options, isolation });
}
