// Seeds the record and publishes with the code of another release, for release-client.ts: reads calls as lines of JSON, and writes
// a reply with the same id to each. Exits when its input ends.
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [checkout] = process.argv.slice(2);
const { DATABASE_URL, QUEUE_URL, ENCRYPTION_KEYS } = process.env;
const load = (name, file = 'index') =>
  import(pathToFileURL(join(checkout, 'packages', name, 'dist', `${file}.js`)).href);

const { createHmacSecret, createId, EVENT_TYPES } = await load('contract');
const { createSecretBox, createServiceToken, parseEncryptionKeys } = await load('database');
const { openPrismaDatabase } = await load('database', 'open-prisma');
const { createEventPublisher } = await load('publisher');
const { seedAccount } = await load('testing');

const database = openPrismaDatabase({ url: DATABASE_URL, onConnectionError: () => undefined });
const publisher = createEventPublisher({ queueUrl: QUEUE_URL });
const secrets = createSecretBox(parseEncryptionKeys(ENCRYPTION_KEYS));

const CALLS = {
  seedAccount: () => seedAccount(database),
  createToken: async (accountId) => {
    const token = { accountId, name: 'chaos', permissionSets: ['account_admin'] };
    return (await createServiceToken(database.prisma, token)).token;
  },
  subscribe: async ({ accountId, clientUrl, name, eventTypes = [...EVENT_TYPES] }) => {
    const { id } = await database.prisma.subscription.create({
      data: {
        id: createId('subscription'),
        accountId: BigInt(accountId),
        name,
        description: '',
        eventTypes,
        jobIds: [],
        clientUrl,
        active: true,
        hmacSecretCiphertext: secrets.encrypt(createHmacSecret()),
      },
    });
    return id;
  },
  publish: async (event) => void (await publisher.publish(event)),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { id, name, argument } = JSON.parse(line);
  const reply = await CALLS[name](argument).then(
    (result) => ({ id, result }),
    (error) => ({ id, error: error.message }),
  );
  process.stdout.write(`${JSON.stringify(reply)}\n`);
});
lines.on('close', async () => {
  await Promise.allSettled([publisher.close(), database.close()]);
  process.exit(0);
});
