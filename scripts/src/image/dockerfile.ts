import {
  type Copy,
  DockerfileParser,
  type From,
  type Instruction,
  type JSONInstruction,
} from 'dockerfile-ast';

/** One instruction as the builder would run it: variables of the Dockerfile replaced, lines joined. */
export type Step =
  | { kind: 'run'; command: string; line: number }
  | { kind: 'copy'; from: string | null; sources: string[]; target: string; line: number }
  | { kind: 'workdir'; path: string }
  | { kind: 'env'; name: string; value: string };

export interface Stage {
  name: string;
  /** Another stage, or an image of a registry. */
  base: string;
  steps: Step[];
  user: string | null;
  entrypoint: string[];
  cmd: string[];
  /** Null where there is none, and for `HEALTHCHECK NONE`. */
  healthcheck: string[] | null;
}

/** The stages in order. Throws for an instruction form that this reader does not know, rather than pass over it. */
export function readStages(text: string): Stage[] {
  const dockerfile = DockerfileParser.parse(text);
  const stages: Stage[] = [];
  for (const instruction of dockerfile.getInstructions()) {
    const keyword = instruction.getKeyword();
    if (keyword === 'FROM') {
      stages.push(emptyStage(instruction as From, stages.length));
      continue;
    }
    const stage = stages.at(-1);
    if (stage !== undefined) apply(stage, keyword, instruction);
  }
  return stages;
}

/** The stage with what it has from the stages that it is built on. Their steps come first. */
export function resolveStage(stages: readonly Stage[], name: string): Stage {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) throw new Error(`the Dockerfile has no stage ${name}`);
  const isStage = stages.some((candidate) => candidate.name === stage.base);
  if (!isStage) return stage;
  const base = resolveStage(stages, stage.base);
  return {
    ...stage,
    base: base.base,
    steps: [...base.steps, ...stage.steps],
    user: stage.user ?? base.user,
    entrypoint: stage.entrypoint.length > 0 ? stage.entrypoint : base.entrypoint,
    cmd: stage.cmd.length > 0 ? stage.cmd : base.cmd,
    healthcheck: stage.healthcheck ?? base.healthcheck,
  };
}

function emptyStage(from: From, index: number): Stage {
  const base = from.getExpandedArguments()[0]?.getValue() ?? '';
  return {
    name: from.getBuildStage() ?? String(index),
    base,
    steps: [],
    user: null,
    entrypoint: [],
    cmd: [],
    healthcheck: null,
  };
}

function apply(stage: Stage, keyword: string, instruction: Instruction): void {
  const line = instruction.getRange().start.line + 1;
  const expanded = instruction.getExpandedArguments().map((argument) => argument.getValue());
  switch (keyword) {
    case 'RUN':
      stage.steps.push({ kind: 'run', command: joinLines(instruction.getRawArgumentsContent() ?? ''), line });
      return;
    case 'COPY':
      stage.steps.push(copyStep(instruction as Copy, line));
      return;
    case 'WORKDIR':
      stage.steps.push({ kind: 'workdir', path: expanded[0] ?? '/' });
      return;
    case 'ENV':
      for (const pair of expanded) {
        const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
        stage.steps.push({ kind: 'env', name, value });
      }
      return;
    case 'USER':
      stage.user = expanded[0] ?? null;
      return;
    case 'ENTRYPOINT':
      stage.entrypoint = execForm(instruction as JSONInstruction);
      return;
    case 'CMD':
      stage.cmd = execForm(instruction as JSONInstruction);
      return;
    case 'HEALTHCHECK':
      stage.healthcheck = healthcheckOf(instruction);
      return;
    case 'ARG':
    case 'LABEL':
    case 'EXPOSE':
      return;
    default:
      throw new Error(`line ${line}: ${keyword} is not known here`);
  }
}

function copyStep(copy: Copy, line: number): Step {
  const paths = copy.getExpandedArguments().map((argument) => argument.getValue());
  const target = paths.pop() ?? '.';
  return { kind: 'copy', from: copy.getFromFlag()?.getValue() ?? null, sources: paths, target, line };
}

function execForm(instruction: JSONInstruction): string[] {
  return jsonStrings(instruction.getRawArgumentsContent() ?? '');
}

function healthcheckOf(instruction: Instruction): string[] | null {
  const [, command] = /\bCMD\s+(.*)$/s.exec(joinLines(instruction.getRawArgumentsContent() ?? '')) ?? [];
  return command === undefined ? null : jsonStrings(command);
}

/** Empty for the shell form. */
function jsonStrings(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(joinLines(text));
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}

function joinLines(text: string): string {
  return text.replace(/\\\n\s*/g, ' ').trim();
}
