/** What the parent asks of a program, and what it gets back. */
export interface Call {
  id: number;
  method: string;
  argument: unknown;
}
export type Answer = { id: number; result: unknown } | { id: number; error: string };

/** Answers the parent's calls until it lets go: a program never outlives whoever started it. */
export function serve(methods: Record<string, (argument: never) => unknown>): void {
  process.on('disconnect', () => process.exit(0));
  // Ctrl-C reaches the whole group of the terminal; the parent ends us in order.
  process.on('SIGINT', () => undefined);
  process.on('message', async ({ id, method, argument }: Call) => {
    const answer = (reply: Answer) => process.connected && process.send?.(reply);
    try {
      answer({ id, result: await methods[method]?.(argument as never) });
    } catch (error) {
      answer({ id, error: (error as Error).stack ?? String(error) });
    }
  });
}
