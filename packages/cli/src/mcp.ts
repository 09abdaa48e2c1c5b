import { type Command, option } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, requireToken } from './connection.ts';

export const mcpCommand: Command<ConnectionOptions & { allowChanges?: true }> = {
  name: 'mcp',
  summary: 'serve tools for AI assistants over stdio (Model Context Protocol)',
  description:
    'Serves the Model Context Protocol on standard input and output, for assistants that start it: failing webhooks and their causes, the webhooks notified of a run, deliveries and logs of runs. Changes nothing unless --allow-changes is set. Ends when its input ends.',
  options: [
    option(
      '--allow-changes',
      'also serve the tools that change or send something: test, redeliver, recover, trigger a run',
    ),
    ...connectionOptions(),
  ],
  examples: ['mcp --token-file ~/.config/runhook/token'],
  async run(context, { allowChanges, ...connection }) {
    const { env, stdin, stdout } = context;
    const token = requireToken(env, connection);
    // Imported here, so that other commands do not load the protocol.
    const { serveTools } = await import('./mcp/server.ts');
    await serveTools({
      stdin,
      stdout,
      stopSignal: context.createStopSignal(),
      areChangesAllowed: allowChanges === true,
      secrets: [token],
      connect: () => connect(env, connection),
    });
    return 0;
  },
};
