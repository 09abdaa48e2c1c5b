import type { AuditEntry } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from './time.ts';

const ACTIONS: Readonly<Record<AuditEntry['action'], (name: string) => string>> = {
  'access.ended': (name) => `ended the access of ${name}, as the identity provider does`,
  'account.changed': (name) => `changed the account ${name}`,
  'api_key.rotated': (name) => `rotated the API key of ${name}`,
  'member.added': (name) => `added ${name} as a member`,
  'member.changed': (name) => `changed the permissions of ${name}`,
  'member.removed': (name) => `removed the member ${name}`,
  'password.changed': () => 'changed the password',
  'password.reset': (name) => `reset the password of ${name}`,
  'secret.rotated': (name) => `rotated the secret of “${name}”`,
  'secret.rotation_finished': (name) => `erased the old secret of “${name}”`,
  'session.ended': () => 'ended sessions',
  'session.sign_in_failed': (name) => `tried to sign in as ${name} with a wrong password`,
  'session.signed_in': () => 'signed in',
  'signature_key.rotated': (name) => `rotated the key pair of “${name}”`,
  'token.created': (name) => `created the service token ${name}`,
  'token.revoked': (name) => `revoked the service token ${name}`,
  'webhook.changed': (name) => `changed “${name}”`,
  'webhook.created': (name) => `created “${name}”`,
  'webhook.deactivated': (name) => `switched off “${name}”`,
  'webhook.deleted': (name) => `deleted “${name}”`,
};

/** "changed “Pager”"; follows the name of the actor. */
export function describeAction({ action, target }: Pick<AuditEntry, 'action' | 'target'>): string {
  return ACTIONS[action](target.name);
}

export function describeActor({ kind, name }: AuditEntry['actor']): string {
  if (kind === 'operator') return 'An operator';
  if (kind === 'service') return 'Runhook';
  if (kind === 'anonymous') return 'Unknown caller';
  return kind === 'service_token' ? `The service token ${name ?? ''}` : (name ?? 'Unknown user');
}

/**
 * "client_url, active", "from 192.0.2.7", "3 times from 192.0.2.0/24 in the 15 minutes from Nov 28, 2026, 3:15 AM"; empty
 * if there are no details.
 */
export function formatDetails(details: AuditEntry['details']): string {
  if ('window_start' in details) return formatFailures(details);
  return Object.entries(details)
    .map(([key, value]) => {
      const text = Array.isArray(value) ? value.join(', ') : String(value);
      if (key === 'address') return `from ${text}`;
      return key === 'changed' || key === 'reason' ? text : `${key.replaceAll('_', ' ')}: ${text || 'none'}`;
    })
    .join('; ');
}

function formatFailures({ count, network, window_start: windowStart }: AuditEntry['details']): string {
  const times = count === 1 ? 'once' : `${count} times`;
  const start = parseTime(String(windowStart));
  return `${times} from ${network}${start ? ` in the 15 minutes from ${formatShortLocalTime(start)}` : ''}`;
}

/** Whether the user may read the audit log and the list of tokens. The API has the same rule. */
export function isAdmin({
  permission_sets: permissionSets,
}: {
  permission_sets: readonly string[];
}): boolean {
  return permissionSets.includes('account_admin') || permissionSets.includes('admin');
}
