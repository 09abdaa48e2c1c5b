import { routePattern, singleQuoted } from '../words/code.ts';

/** What a receiver of `examples/receivers` is filled in with. */
export interface OfWebhook {
  clientUrl: string;
  signatureHeader: string;
}

/** By language: the code of the example with the webhook's header and path in place of its own. */
export const FILL_IN = {
  express: (code: string, { signatureHeader, clientUrl }: OfWebhook) =>
    withConstants(code, {
      'const SIGNATURE_HEADER': `${singleQuoted(signatureHeader.toLowerCase())};`,
      'const PATH': `${singleQuoted(routePattern(pathOf(clientUrl)))};`,
    }),
  python: (code: string, { signatureHeader, clientUrl }: OfWebhook) =>
    withConstants(code, {
      SIGNATURE_HEADER: JSON.stringify(signatureHeader.toLowerCase()),
      PATH: JSON.stringify(pathOf(clientUrl)),
    }),
};

/** Gives constants of a file other values. Throws when it has none of that name: the example and this have to agree. */
function withConstants(code: string, values: Record<string, string>): string {
  return Object.entries(values).reduce((filled, [name, value]) => {
    const line = new RegExp(`^${name} = .*$`, 'm');
    if (!line.test(filled)) throw new Error(`The example has no line “${name} = …”.`);
    return filled.replace(line, () => `${name} = ${value}`);
  }, code);
}

function pathOf(clientUrl: string): string {
  return new URL(clientUrl).pathname;
}
