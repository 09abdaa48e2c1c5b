import { routePattern, singleQuoted } from '../words/code.ts';

/** Values that are inserted into a receiver of `examples/receivers`. */
export interface OfWebhook {
  clientUrl: string;
  signatureHeader: string;
}

/** Functions by language that return the code of the example with the webhook's header and path. */
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

/** Replaces the values of constants in the code. Throws if a constant is missing, because the example has changed. */
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
