import type { AuditEntry } from '../api/types.ts';

const ACTIONS: Readonly<Record<AuditEntry['action'], (name: string) => string>> = {
  'access.ended': (name) => `ended the access of ${name}, as the identity provider does`,
  'account.changed': (name) => `changed the account ${name}`,
  'api_key.rotated': (name) => `rotated the API key of ${name}`,
  'member.added': (name) => `added ${name} as a member`,
  'member.changed': (name) => `changed the permissions of ${name}`,
  'member.removed': (name) => `removed the member ${name}`,
  'password.reset': (name) => `reset the password of ${name}`,
  'secret.rotated': (name) => `rotated the secret of “${name}”`,
  'secret.rotation_finished': (name) => `erased the old secret of “${name}”`,
  'session.signed_in': () => 'signed in',
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
  return kind === 'service_token' ? `The service token ${name ?? ''}` : (name ?? 'Unknown user');
}

/** "client_url, active", "from 192.0.2.7"; empty if there are no details. */
export function formatDetails(details: AuditEntry['details']): string {
  return Object.entries(details)
    .map(([key, value]) => {
      const text = Array.isArray(value) ? value.join(', ') : String(value);
      if (key === 'address') return `from ${text}`;
      return key === 'changed' || key === 'reason' ? text : `${key.replaceAll('_', ' ')}: ${text || 'none'}`;
    })
    .join('; ');
}

/** Whether the user may read the audit log. The API has the same rule. */
export function mayReadAudit({
  permission_sets: permissionSets,
}: {
  permission_sets: readonly string[];
}): boolean {
  return permissionSets.includes('account_admin') || permissionSets.includes('admin');
}
