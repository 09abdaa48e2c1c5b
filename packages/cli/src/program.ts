import { VERSION } from '@runhook/client';
import { writeLine } from '@runhook/runtime/terminal-text';
import { Command as Commander, CommanderError, type Option } from 'commander';
import {
  type CliError,
  type Command,
  type CommandGroup,
  cliError,
  createContext,
  type ProcessContext,
  UsageError,
} from './command.ts';
import { completionCommand, completions } from './completion.ts';
import { doctorCommand } from './doctor.ts';
import { jobsGroup } from './jobs.ts';
import { listenCommand } from './listen.ts';
import { deliveriesGroup, runsGroup } from './log.ts';
import { sendCommand, verifyCommand } from './send-and-verify.ts';
import { webhooksGroup } from './webhooks.ts';

const NAME = 'runhook';
const COMMANDS = [listenCommand, sendCommand, verifyCommand, doctorCommand, completionCommand] as Command[];
const GROUPS: CommandGroup[] = [webhooksGroup, deliveriesGroup, jobsGroup, runsGroup];

const DESCRIPTION =
  'Runhook from the command line: forward deliveries to your own machine, check signatures, manage webhooks, deliveries, jobs and runs, and check an installation.';
const EXAMPLES = [
  'listen --webhook "Production pager" --forward http://localhost:8080/hook',
  'send --to http://localhost:8080/hook',
  'webhooks list --failing',
  'deliveries list --status failed --since 24h --json',
];
const EXIT_CODES = `
Exit codes:
  0  success, and no problem was found
  1  a problem was found, or the command failed: rejected, not reached, a response other than 2xx
  2  the command line is invalid; nothing was done`;

type Execute = (command: Command, options: object, positionals: string[]) => Promise<void>;

/** Creates the parser of the command line, which throws `CommanderError`. */
function createProgram(onHelp: (text: string) => void, execute: Execute): Commander {
  const program = new Commander(NAME)
    .description(DESCRIPTION)
    .version(VERSION)
    .option(
      '--json',
      'print JSON for scripts, one line per item if there are several; errors as JSON to standard error',
    )
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, optionDescription: describeOption })
    .configureOutput({ writeOut: onHelp, writeErr: onHelp, outputError: () => undefined })
    .addHelpText('after', `${examplesText(EXAMPLES)}\n${EXIT_CODES}`);
  for (const command of COMMANDS) addCommand(program, command, command.name, execute);
  for (const group of GROUPS) {
    const parent = program.command(group.name).description(group.summary);
    parent.addHelpText(
      'after',
      examplesText(group.commands.map(({ examples: [firstExample = ''] }) => firstExample)),
    );
    for (const command of group.commands)
      addCommand(parent, command, `${group.name} ${command.name}`, execute);
  }
  return program;
}

function addCommand(parent: Commander, command: Command, path: string, execute: Execute): void {
  const child = parent
    .command(command.name)
    .summary(command.summary)
    .description(command.description)
    .addHelpText('after', examplesText(command.examples.map((example) => (example === '' ? path : example))));
  for (const [flags, description] of command.arguments ?? []) child.argument(flags, description);
  for (const option of command.options) child.addOption(option);
  child.action(() => execute(command, child.opts(), child.args));
}

/** Marks required options, which the order of the list does not show. */
function describeOption(option: Option): string {
  const { description, mandatory, defaultValue, argChoices } = option;
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
  if (mandatory && defaultValue === undefined) return `${description}${choices} (required)`;
  return `${description}${choices}${defaultValue === undefined ? '' : ` (default: ${defaultValue})`}`;
}

function examplesText(examples: readonly string[]): string {
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((example) => `  ${NAME} ${example}`).join('\n')}`;
}

/**
 * Runs a command line (docs/cli.md). Resolves with the exit code. Results are written to standard output, errors and
 * notes to standard error.
 */
export async function runCli(args: readonly string[], processContext: ProcessContext): Promise<number> {
  const { stdout, stderr } = processContext;
  const isJson = args.includes('--json');
  let help = '';
  let exitCode = 0;
  const onHelp = (text: string) => {
    help += text;
  };
  const program = createProgram(onHelp, async (command, options, positionals) => {
    exitCode = await command.run(createContext(processContext, isJson), options as never, positionals);
  });
  if (args[0] === '__complete') {
    await writeLine(stdout, completions(program, args.slice(1)).join('\n'));
    return 0;
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (thrown) {
    const isHelp = thrown instanceof CommanderError && /^commander\.(help|version)/.test(thrown.code);
    if (isHelp && (thrown.exitCode === 0 || !isJson)) {
      await writeLine(stdout, help.trimEnd());
      return 0;
    }
    const error = isHelp ? new UsageError('Missing command.') : cliError(thrown);
    await writeLine(stderr, isJson ? errorJson(error) : errorText(error));
    return error.exitCode;
  }
}

function errorJson({ code, message }: CliError): string {
  return JSON.stringify({ error: { code, message } });
}

function errorText(error: CliError): string {
  return `error: ${error.message}${error instanceof UsageError ? ' (see --help)' : ''}`;
}
