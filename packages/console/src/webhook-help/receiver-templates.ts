import { quoteForScript, routePattern } from '../wording/code.ts';

/** Values that are inserted into a receiver of `examples/receivers`. */
export interface WebhookSettings {
  clientUrl: string;
  signatureHeader: string;
}

/** Functions by language that return the code of the example with the webhook's header and path. */
export const RECEIVER_TEMPLATES = {
  express: (code: string, { signatureHeader, clientUrl }: WebhookSettings) =>
    replaceConstants(code, {
      'const SIGNATURE_HEADER': `${quoteForScript(signatureHeader.toLowerCase())};`,
      'const PATH': `${quoteForScript(routePattern(pathOf(clientUrl)))};`,
    }),
  python: (code: string, { signatureHeader, clientUrl }: WebhookSettings) =>
    replaceConstants(code, {
      SIGNATURE_HEADER: JSON.stringify(signatureHeader.toLowerCase()),
      PATH: JSON.stringify(pathOf(clientUrl)),
    }),
};

/** Replaces the values of constants in the code. Throws if a constant is missing, because the example has changed. */
function replaceConstants(code: string, values: Record<string, string>): string {
  return Object.entries(values).reduce((filled, [name, value]) => {
    const line = new RegExp(`^${name} = .*$`, 'm');
    if (!line.test(filled)) throw new Error(`The example has no line “${name} = …”.`);
    return filled.replace(line, () => `${name} = ${value}`);
  }, code);
}

function pathOf(clientUrl: string): string {
  return new URL(clientUrl).pathname;
}
