import type { Command as Commander, Option } from 'commander';
import { type Command, UsageError } from './command.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** Each script calls the program, so that it need not be generated again when commands change. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_runhook() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(runhook __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _runhook runhook`,
  zsh: `#compdef runhook
_runhook() {
  local -a found
  found=(\${(f)"$(runhook __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _runhook runhook`,
  fish: `function __runhook_complete
    set -l words (commandline -opc)
    runhook __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c runhook -f -n 'string length -q -- (__runhook_complete)' -a '(__runhook_complete)'`,
};

export const completionCommand: Command<object> = {
  name: 'completion',
  summary: 'print a shell completion script',
  description:
    'Prints a completion script for a shell. The script calls runhook for the completions, so it also works with other versions.',
  arguments: [['<shell>', SHELLS.join(', ')]],
  options: [],
  examples: [
    'completion bash > /etc/bash_completion.d/runhook',
    'completion zsh > ~/.zsh/completions/_runhook',
    'completion fish > ~/.config/fish/completions/runhook.fish',
  ],
  async run(context, _options, [shell]) {
    const shellName = SHELLS.find((name) => name === shell);
    if (shellName === undefined) throw new UsageError(`The shell must be one of ${SHELLS.join(', ')}.`);
    await context.writeResult(SCRIPTS[shellName], { shell: shellName, script: SCRIPTS[shellName] });
    return 0;
  },
};

/** Returns the completions of the last of `args`, which may be ''. */
export function completions(program: Commander, args: readonly string[]): string[] {
  const current = args.at(-1) ?? '';
  let command = program;
  let pendingOption: Option | undefined;
  for (const word of args.slice(0, -1)) {
    const isOptionValue: boolean = pendingOption !== undefined;
    pendingOption = isOptionValue
      ? undefined
      : optionsOf(program, command).find((one) => [one.long, one.short].includes(word) && !one.isBoolean());
    if (!isOptionValue && pendingOption === undefined)
      command = command.commands.find((one) => one.name() === word) ?? command;
  }
  const matches = pendingOption?.argChoices ?? (pendingOption ? [] : candidates(program, command, current));
  return matches.filter((word) => word.startsWith(current)).sort();
}

function candidates(program: Commander, command: Commander, current: string): string[] {
  if (current.startsWith('-')) return optionsOf(program, command).flatMap(({ long }) => long ?? []);
  if (command.name() === completionCommand.name) return [...SHELLS];
  return command.commands.map((one) => one.name());
}

function optionsOf(program: Commander, command: Commander): Option[] {
  return [
    ...new Set([...command.options, ...program.options, ...command.createHelp().visibleOptions(command)]),
  ];
}
