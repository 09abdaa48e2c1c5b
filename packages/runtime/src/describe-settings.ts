/**
 * Settings as the start-up log line may show them. Each one named in `secretNames` becomes `<name>Configured`, true when it
 * is set to something. In the others, credentials inside a URL are masked all the same.
 */
export function describeSettings<T extends object>(
  settings: T,
  secretNames: readonly (keyof T & string)[] = [],
): Record<string, unknown> {
  const secrets = new Set<string>(secretNames);
  const described: Record<string, unknown> = {};
  for (const name of secrets) described[`${name}Configured`] = isSet(settings[name as keyof T]);
  for (const [name, value] of Object.entries(settings)) {
    if (!secrets.has(name)) described[name] = typeof value === 'string' ? maskCredentials(value) : value;
  }
  return described;
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** Everything before the last @ of the authority, for a password may hold an @ of its own; and what is a parameter. */
function maskCredentials(text: string): string {
  return text.replace(/:\/\/[^/?#\s]*@/g, '://***@').replace(/([?&]\w*password=)[^&#\s]*/gi, '$1***');
}
