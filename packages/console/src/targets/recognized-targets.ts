/** A target that requires its own message format, and therefore rejects Runhook's payload. */
export interface RecognizedTarget {
  /** Name of the target in `examples/relays`. */
  key: 'slack' | 'teams' | 'discord' | 'pagerduty';
  name: string;
  /** The setting that the relay requires for this target only; null if none. */
  relayRequirement: 'routing-key' | null;
}

type TargetDefinition = RecognizedTarget & { matches: (url: URL) => boolean };

const TARGETS: readonly TargetDefinition[] = [
  {
    key: 'slack',
    name: 'Slack',
    relayRequirement: null,
    matches: ({ hostname }) => /^hooks\.slack(-gov)?\.com$/.test(hostname),
  },
  {
    key: 'teams',
    name: 'Microsoft Teams',
    relayRequirement: null,
    // Connectors, and workflows of Power Automate at their old and new addresses.
    matches: ({ hostname, pathname }) =>
      /(^|\.)webhook\.office\.com$/.test(hostname) ||
      /\.logic\.azure\.(com|us)$/.test(hostname) ||
      (/\.api\.powerplatform\.com$/.test(hostname) && pathname.includes('/workflows/')) ||
      (hostname === 'outlook.office.com' && pathname.startsWith('/webhook/')),
  },
  {
    key: 'pagerduty',
    name: 'PagerDuty',
    relayRequirement: 'routing-key',
    matches: ({ hostname }) => /^events(\.eu)?\.pagerduty\.com$/.test(hostname),
  },
  {
    key: 'discord',
    name: 'Discord',
    relayRequirement: null,
    matches: ({ hostname, pathname }) =>
      /^((canary|ptb)\.)?discord(app)?\.com$/.test(hostname) && /^\/api\/(v\d+\/)?webhooks\//.test(pathname),
  },
];

/** Returns the known target of an endpoint URL, which may be incomplete; null for any other endpoint. */
export function recognizeTarget(clientUrl: string): RecognizedTarget | null {
  const text = clientUrl.trim();
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const found = TARGETS.find(({ matches }) => matches(url));
  return found ? { key: found.key, name: found.name, relayRequirement: found.relayRequirement } : null;
}
