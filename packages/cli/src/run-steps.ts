import { RUN_STEP_LIMITS } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import { CliError, type Command, option, parsers } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions } from './connection.ts';
import { notFound, RUN_ARGUMENT, RUNS_PATH, runId } from './references.ts';

const STEPS_PATH = `${RUNS_PATH}/{run_id}/steps` as const;

export const runSteps: Command<ConnectionOptions> = {
  name: 'steps',
  summary: 'list the steps of a run',
  description: 'Lists the steps of a run, with their status and duration.',
  arguments: [RUN_ARGUMENT],
  options: connectionOptions(),
  examples: ['runs steps 2482'],
  async run(context, options, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, options);
    const steps = await client
      .get(STEPS_PATH, { path: { run_id: id }, query: { logs: false } })
      .catch(notFound(`run ${id}`));
    const cells = steps.map((step) => [
      String(step.index),
      step.status_humanized,
      step.duration,
      String(step.logs_bytes),
      step.name,
    ]);
    await context.writeResult(table(['STEP', 'STATUS', 'DURATION', 'LOG BYTES', 'NAME'], cells), steps);
    return 0;
  },
};

interface LogsOptions extends ConnectionOptions {
  step?: number;
  debug?: boolean;
}

export const runLogs: Command<LogsOptions> = {
  name: 'logs',
  summary: 'print the logs of a run',
  description: 'Prints the logs of the steps of a run, with their colours.',
  arguments: [RUN_ARGUMENT],
  options: [
    option('--step <index>', 'only the log of this step', parsers.integer(0, RUN_STEP_LIMITS.indexMax)),
    option('--debug', 'print the debug logs'),
    ...connectionOptions(),
  ],
  examples: ['runs logs 2482 --step 4'],
  async run(context, { step: index, debug = false, ...connection }, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, connection);
    const query = debug ? ({ include_related: 'debug_logs' } as const) : {};
    const steps = await client.get(STEPS_PATH, { path: { run_id: id }, query }).catch(notFound(`run ${id}`));
    const chosen = steps.filter((step) => index === undefined || step.index === index);
    if (index !== undefined && chosen.length === 0)
      throw new CliError('not_found', `Run ${id} has no step ${index}.`);
    const logs = chosen.map((step) => {
      const text = (debug ? step.debug_logs : step.logs) ?? '';
      const heading = index === undefined ? `==> ${step.index}. ${terminalText(step.name)}\n` : '';
      return heading + terminalText(text).replace(/\n$/, '');
    });
    await context.writeResult(logs.join('\n'), chosen);
    return 0;
  },
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character
const ESCAPES = /\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character
const COLORS = /(\x1b\[[0-9;:]*m)/;
const UNSAFE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** Removes what controls the terminal, except for colours: a log is text of other programs. */
function terminalText(text: string): string {
  const withColors = text.replace(ESCAPES, (sequence) => (COLORS.test(sequence) ? sequence : ''));
  const parts = withColors.split(COLORS);
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replace(UNSAFE, ''))).join('');
}
