import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { copyContext } from './build-context.ts';
import type { Stage, Step } from './dockerfile.ts';

export interface Builder {
  /** Where the stage's root file system is. Runs its steps when nobody has yet. */
  rootOf(stageName: string): string;
}

export interface BuilderOptions {
  checkout: string;
  /** Empty, ours alone. */
  workFolder: string;
  stages: readonly Stage[];
  /** Of the commands. What they install for all goes below the work folder. */
  environment: NodeJS.ProcessEnv;
  onStep(text: string): void;
}

/**
 * Executes the Dockerfile's own steps without a container engine. Each stage has a folder as its root; absolute paths
 * of the Dockerfile that lie in folders of its own making (`/src`, `/out`, `/app`) are placed below that folder, in
 * commands too. All else (the programs that commands call) is this machine's.
 */
export function createBuilder(options: BuilderOptions): Builder {
  const { checkout, workFolder, stages, environment, onStep } = options;
  const context = join(workFolder, 'context');
  const built = new Map<string, string>();
  const ownFolders = ownTopFolders(stages);

  function rootOf(stageName: string): string {
    const known = built.get(stageName);
    if (known !== undefined) return known;
    const stage = stages.find(({ name }) => name === stageName);
    if (stage === undefined) throw new Error(`the Dockerfile has no stage ${stageName}`);
    const root = join(workFolder, 'stages', stageName);
    mkdirSync(root, { recursive: true });
    built.set(stageName, root);
    if (stages.some(({ name }) => name === stage.base)) {
      cpSync(rootOf(stage.base), root, { recursive: true, verbatimSymlinks: true });
    }
    const state = { root, directory: '/', variables: {} as Record<string, string> };
    for (const step of inherited(stage))
      if (step.kind !== 'run' && step.kind !== 'copy') runStep(state, step);
    for (const step of stage.steps) runStep(state, step);
    return root;
  }

  function inherited(stage: Stage): Step[] {
    const base = stages.find(({ name }) => name === stage.base);
    return base === undefined ? [] : [...inherited(base), ...base.steps];
  }

  function runStep(
    state: { root: string; directory: string; variables: Record<string, string> },
    step: Step,
  ) {
    switch (step.kind) {
      case 'env':
        state.variables[step.name] = step.value;
        return;
      case 'workdir':
        state.directory = posix.resolve(state.directory, step.path);
        mkdirSync(join(state.root, state.directory), { recursive: true });
        return;
      case 'copy':
        copy(state, step);
        return;
      case 'run':
        run(state, step.command);
    }
  }

  function copy(state: { root: string; directory: string }, step: Step & { kind: 'copy' }) {
    onStep(`COPY ${step.sources.join(' ')} ${step.target}`);
    if (step.from === null && !existsSync(context)) {
      const files = copyContext(checkout, context);
      onStep(`(the context: ${files.length} files)`);
    }
    const sourceRoot = step.from === null ? context : rootOf(step.from);
    const target = join(state.root, posix.resolve(state.directory, step.target));
    for (const source of step.sources) {
      const path = join(sourceRoot, source);
      const isFolder = lstatSync(path).isDirectory();
      const into = !isFolder && step.target.endsWith('/') ? join(target, basename(source)) : target;
      cpSync(path, into, { recursive: true, verbatimSymlinks: true });
    }
  }

  function run(
    state: { root: string; directory: string; variables: Record<string, string> },
    command: string,
  ) {
    const placed = command.replace(/(^|[\s='"])\/([\w.-]+)/g, (whole, before: string, folder: string) =>
      ownFolders.has(folder) ? `${before}${state.root}/${folder}` : whole,
    );
    onStep(`RUN ${command}`);
    const tools = join(workFolder, 'tools');
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', placed], {
      cwd: join(state.root, state.directory),
      encoding: 'utf8',
      env: {
        ...environment,
        ...state.variables,
        npm_config_prefix: tools,
        PATH: `${join(tools, 'bin')}:${environment.PATH}`,
      },
      maxBuffer: 64 * 1_048_576,
    });
    if (status !== 0) throw new Error(`RUN ${command}\nended with ${status}\n${stdout}\n${stderr}`);
  }

  return { rootOf };
}

/** `/src/a` of a WORKDIR and `/out/b` of a COPY --from: the folders that the Dockerfile makes itself. */
function ownTopFolders(stages: readonly Stage[]): Set<string> {
  const steps = stages.flatMap((stage) => stage.steps);
  const paths = steps.flatMap((step) => {
    if (step.kind === 'workdir') return [step.path];
    return step.kind === 'copy' && step.from !== null ? step.sources : [];
  });
  const machine = new Set(
    readdirSync('/').filter((name) => ['bin', 'etc', 'usr', 'lib', 'dev', 'proc'].includes(name)),
  );
  return new Set(
    paths
      .filter((path) => path.startsWith('/'))
      .map((path) => path.split('/')[1] ?? '')
      .filter((folder) => folder !== '' && !machine.has(folder)),
  );
}
