import { type Reencryption, reencryptSecrets } from '@runhook/database';
import type { Command, CommandGroup } from './command.ts';

const NAMES: Record<Reencryption['secret'], { plural: string; owner: string }> = {
  next_hmac_secret: { plural: 'webhook secrets that take over', owner: 'subscription' },
  hmac_secret: { plural: 'webhook secrets', owner: 'subscription' },
  headers: { plural: 'headers of webhooks', owner: 'subscription' },
  api_key: { plural: 'API keys', owner: 'user' },
};

const reencrypt: Command<object> = {
  name: 'reencrypt',
  summary: 'put every secret under the newest encryption key',
  description:
    'Encrypts every stored secret that is not under the newest (the first) of ENCRYPTION_KEYS again, under that one. All services must have that key already. Safe while they run; may be repeated. When it ends with 0, the other keys can be taken out of ENCRYPTION_KEYS. A secret that none of the keys decrypts is reported and left as it is, and makes it end with 1.',
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
    `${plural}: ${reencrypted} encrypted again under the key "${newestName}"`,
    ...(busy === 0 ? [] : [`  ${busy} were in use all the time: run this again`]),
    ...unreadable.map(
      ({ id, keyName }) =>
        `  ${owner} ${id}: does not decrypt${keyName === null ? '' : ` (it says it is under the key "${keyName}")`}`,
    ),
  ];
}

export const secretsGroup: CommandGroup = {
  name: 'secrets',
  summary: 'secrets at rest',
  commands: [reencrypt] as Command[],
};
