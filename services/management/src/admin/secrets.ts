import { type Reencryption, reencryptSecrets } from '@runhook/database';
import type { Command, CommandGroup } from './command.ts';

const NAMES: Record<Reencryption['secret'], { plural: string; owner: string }> = {
  next_hmac_secret: { plural: 'next webhook secrets', owner: 'subscription' },
  hmac_secret: { plural: 'webhook secrets', owner: 'subscription' },
  next_signature_key: { plural: 'next private keys of webhooks', owner: 'subscription' },
  signature_key: { plural: 'private keys of webhooks', owner: 'subscription' },
  headers: { plural: 'headers of webhooks', owner: 'subscription' },
  format_options: { plural: 'format options of webhooks', owner: 'subscription' },
  api_key: { plural: 'API keys', owner: 'user' },
  refresh_token: { plural: 'refresh tokens of the identity provider', owner: 'identity' },
};

const reencrypt: Command<object> = {
  name: 'reencrypt',
  summary: 'encrypt all secrets with the newest encryption key',
  description:
    'Encrypts every secret that is stored under an older key with the newest (the first) of ENCRYPTION_KEYS. All services must have that key already. May be run while they are running, and may be repeated. After exit code 0 the other keys can be removed from ENCRYPTION_KEYS. A secret that no key decrypts is reported and not changed; the command then exits with 1.',
  options: [],
  examples: ['secrets reencrypt'],
  needsKeys: true,
  async run(_options, { pool, encryptionKeys }) {
    const [newest, ...older] = encryptionKeys;
    if (newest === undefined) throw new Error('a command without its keys');
    const results = await reencryptSecrets(pool, [newest, ...older]);
    const isComplete = results.every(({ unreadable, busy }) => unreadable.length === 0 && busy === 0);
    return {
      json: { key: newest.name, is_complete: isComplete, secrets: results.map(reencryptionView) },
      text: results.flatMap((result) => reencryptionLines(result, newest.name)).join('\n'),
      exitCode: isComplete ? 0 : 1,
    };
  },
};

function reencryptionView({ secret, reencrypted, unreadable, busy }: Reencryption) {
  return {
    secret,
    reencrypted,
    unreadable: unreadable.map(({ id, keyName }) => ({ id, key: keyName })),
    busy,
  };
}

function reencryptionLines(
  { secret, reencrypted, unreadable, busy }: Reencryption,
  newestName: string,
): string[] {
  const { plural, owner } = NAMES[secret];
  return [
    `${plural}: ${reencrypted} re-encrypted with the key "${newestName}"`,
    ...(busy === 0 ? [] : [`  ${busy} were locked all the time: run the command again`]),
    ...unreadable.map(
      ({ id, keyName }) =>
        `  ${owner} ${id}: does not decrypt${keyName === null ? '' : ` (its key is named "${keyName}")`}`,
    ),
  ];
}

export const secretsGroup: CommandGroup = {
  name: 'secrets',
  summary: 'secrets at rest',
  commands: [reencrypt] as Command[],
};
