import { Command as Commander, type Option } from 'commander';
import { accountGroup } from './account.ts';
import type { Command, CommandGroup } from './command.ts';
import { membershipGroup } from './membership.ts';
import { secretsGroup } from './secrets.ts';
import { tokenGroup } from './token.ts';
import { userGroup } from './user.ts';

const GROUPS = [accountGroup, userGroup, membershipGroup, tokenGroup, secretsGroup];

const DESCRIPTION =
  'Administers Runhook: accounts, users, who may do what, service tokens, secrets at rest. Works on the database of DATABASE_URL; next to a running `npm start`, on that one.';

const EXAMPLES = [
  'account create --name Acme --plan enterprise',
  'user create --email ada@example.com --name "Ada Lovelace"',
  'membership add --account 1 --user ada@example.com --license developer --permission-set admin',
  'token create --account 1 --name CI --permission-set job_runner --expires-in 90d',
  'token list --account 1 --json',
];

export interface ProgramOptions {
  /** How the operator called it, for the help. */
  name: string;
  /** Gets help and nothing else: errors are thrown. */
  onHelp: (text: string) => void;
  execute: (command: Command, options: object) => Promise<void>;
}

/** The parser of the whole command line. It throws `CommanderError` and what the parsers of values throw. */
export function createProgram({ name, onHelp, execute }: ProgramOptions): Commander {
  const program = new Commander(name)
    .description(DESCRIPTION)
    .option('--json', 'write one JSON document, for scripts; errors too, to standard error')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, optionDescription: describeOption })
    .configureOutput({ writeOut: onHelp, writeErr: onHelp, outputError: () => undefined })
    .addHelpText('after', examplesText(name, EXAMPLES));
  for (const group of GROUPS) addGroup(program, group, name, execute);
  return program;
}

function addGroup(
  program: Commander,
  group: CommandGroup,
  name: string,
  execute: ProgramOptions['execute'],
): void {
  const parent = program.command(group.name).description(group.summary);
  const examples = group.commands.flatMap(({ examples: [first] }) => (first === undefined ? [] : [first]));
  parent.addHelpText('after', examplesText(name, examples));
  for (const command of group.commands) {
    const child = parent
      .command(command.name)
      .summary(command.summary)
      .description(command.description)
      .addHelpText('after', examplesText(name, command.examples));
    for (const option of command.options) child.addOption(option);
    child.action((options: object) => execute(command, options));
  }
}

/** Which options there must be is not to be told from their order alone. */
function describeOption(option: Option): string {
  const { description, mandatory, defaultValue } = option;
  if (mandatory && defaultValue === undefined) return `${description} (required)`;
  return defaultValue === undefined ? description : `${description} (default: ${defaultValue})`;
}

function examplesText(name: string, examples: readonly string[]): string {
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((example) => `  ${name} ${example}`).join('\n')}`;
}
