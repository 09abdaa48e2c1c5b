/** A target that requires its own message format, and therefore rejects Runhook's payload. */
export interface KnownTarget {
  /** Name of the target in `examples/relays`. */
  key: 'slack' | 'teams' | 'discord' | 'pagerduty';
  name: string;
  /** Name of the relay's setting for the target's address, if it is not `TARGET_URL`. */
  needs: 'routing-key' | null;
}

type Recognised = KnownTarget & { isAt: (url: URL) => boolean };

const TARGETS: readonly Recognised[] = [
  {
    key: 'slack',
    name: 'Slack',
    needs: null,
    isAt: ({ hostname }) => /^hooks\.slack(-gov)?\.com$/.test(hostname),
  },
  {
    key: 'teams',
    name: 'Microsoft Teams',
    needs: null,
    // Connectors, and workflows of Power Automate at their old and new addresses.
    isAt: ({ hostname, pathname }) =>
      /(^|\.)webhook\.office\.com$/.test(hostname) ||
      /\.logic\.azure\.(com|us)$/.test(hostname) ||
      (/\.api\.powerplatform\.com$/.test(hostname) && pathname.includes('/workflows/')) ||
      (hostname === 'outlook.office.com' && pathname.startsWith('/webhook/')),
  },
  {
    key: 'pagerduty',
    name: 'PagerDuty',
    needs: 'routing-key',
    isAt: ({ hostname }) => /^events(\.eu)?\.pagerduty\.com$/.test(hostname),
  },
  {
    key: 'discord',
    name: 'Discord',
    needs: null,
    isAt: ({ hostname, pathname }) =>
      /^((canary|ptb)\.)?discord(app)?\.com$/.test(hostname) && /^\/api\/(v\d+\/)?webhooks\//.test(pathname),
  },
];

/** Returns the known target of an endpoint URL, which may be incomplete; null for any other endpoint. */
export function knownTarget(clientUrl: string): KnownTarget | null {
  const text = clientUrl.trim();
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const found = TARGETS.find(({ isAt }) => isAt(url));
  return found ? { key: found.key, name: found.name, needs: found.needs } : null;
}
