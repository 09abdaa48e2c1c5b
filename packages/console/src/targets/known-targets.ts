/** A target that takes a format of its own, so that it refuses what Runhook sends. */
export interface KnownTarget {
  /** As the relay of `examples/relays` calls it. */
  key: 'slack' | 'teams' | 'discord' | 'pagerduty';
  name: string;
  /** What its own address is to the relay, when it is another one than `TARGET_URL`. */
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
    // Connectors, and workflows of Power Automate at their old and their new address.
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

/** The target that an address leads to, however far it is typed; null for any other. */
export function knownTarget(clientUrl: string): KnownTarget | null {
  const text = clientUrl.trim();
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const found = TARGETS.find(({ isAt }) => isAt(url));
  return found ? { key: found.key, name: found.name, needs: found.needs } : null;
}
