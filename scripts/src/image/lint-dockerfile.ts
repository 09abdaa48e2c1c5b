import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { readStages, resolveStage, type Stage } from './dockerfile.ts';

/** What a shell would get in between: with these, node would not be process 1 and would never see SIGTERM. */
const SHELLS = /^(sh|bash|ash|dash|npm|npx|pnpm|yarn)$/;
const SECRET_NAME = /(PASSWORD|SECRET|TOKEN|PRIVATE|CREDENTIAL|_KEYS?|DATABASE_URL|QUEUE_URL)/i;

/**
 * What is wrong with a Dockerfile, one line each; empty when nothing is. The syntax is checked by the library that
 * editors use; the rules on top are the ones that matter for a service.
 * @param targets the stages that become images
 */
export function dockerfileFindings(text: string, targets: readonly string[]): string[] {
  const syntax = validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`);
  const plain = [...syntax, ...instructionFindings(text)];
  // What is not even a Dockerfile of ours cannot be read in stages.
  if (plain.length > 0) return plain;
  const stages = readStages(text);
  return [
    ...stages.filter(({ base }) => !stages.some(({ name }) => name === base)).flatMap(baseFindings),
    ...targets.flatMap((name) => imageFindings(resolveStage(stages, name), stages)),
  ];
}

function instructionFindings(text: string): string[] {
  const dockerfile = DockerfileParser.parse(text);
  return dockerfile.getInstructions().flatMap((instruction) => {
    const line = instruction.getRange().start.line + 1;
    const raw = instruction.getRawArgumentsContent() ?? '';
    const keyword = instruction.getKeyword();
    if (keyword === 'ADD') return [`line ${line}: ADD fetches and unpacks; COPY says what it does`];
    if ((keyword === 'ENV' || keyword === 'ARG') && SECRET_NAME.test(raw))
      return [`line ${line}: ${keyword} of a secret stays in the image's history`];
    if (keyword === 'RUN' && /\bsudo\b|curl[^|]*\|\s*(ba)?sh/.test(raw))
      return [`line ${line}: RUN executes what nobody has checked`];
    if (keyword === 'RUN' && /(npm|pnpm|npx)[^&|]*@latest/.test(raw))
      return [`line ${line}: RUN installs whatever is newest`];
    if (keyword === 'RUN' && /pnpm install/.test(raw) && !/--frozen-lockfile/.test(raw))
      return [`line ${line}: RUN installs without the lockfile`];
    return [];
  });
}

function baseFindings({ name, base }: Stage): string[] {
  if (/@sha256:[0-9a-f]{64}$/.test(base)) return [];
  const tag = /:([^:/]+)$/.exec(base)?.[1];
  if (tag === undefined || tag === 'latest') return [`stage ${name}: ${base} names no version`];
  if (!/\d+\.\d+\.\d+/.test(tag)) return [`stage ${name}: ${base} moves; pin a full version`];
  if (!/slim|alpine|distroless/.test(tag)) return [`stage ${name}: ${base} is not a slim base`];
  return [];
}

function imageFindings(stage: Stage, stages: readonly Stage[]): string[] {
  const say = (finding: string) => `image ${stage.name}: ${finding}`;
  const findings: string[] = [];
  const [uid, gid] = (stage.user ?? '').split(':');
  if (!/^[1-9]\d*$/.test(uid ?? '') || !/^[1-9]\d*$/.test(gid ?? ''))
    findings.push(say('USER must be a number above 0 with its group'));
  if (stage.entrypoint[0] !== 'node') findings.push(say('ENTRYPOINT must be node itself, in exec form'));
  if (stage.entrypoint.some((word) => SHELLS.test(word)))
    findings.push(say('ENTRYPOINT goes through a shell'));
  if (stage.cmd.length === 0 || SHELLS.test(stage.cmd[0] ?? ''))
    findings.push(say('CMD must be in exec form'));
  const steps = stage.steps;
  if (!steps.some((step) => step.kind === 'env' && step.name === 'NODE_ENV' && step.value === 'production'))
    findings.push(say('NODE_ENV must be production'));
  for (const step of steps) {
    if (step.kind === 'run') findings.push(say(`line ${step.line} runs a command in the final stage`));
    if (step.kind === 'copy' && !stages.some(({ name }) => name === step.from))
      findings.push(say(`line ${step.line} copies from outside instead of from a stage`));
  }
  return findings;
}
