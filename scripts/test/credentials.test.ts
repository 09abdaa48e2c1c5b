import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { databaseName, openCredentials } from '../src/database-contents.ts';
import { readOrCreateEncryptionKeys } from '../src/home.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

test('npm start stores credentials for each database, and those of another database do not replace them', async () => {
  await inTemporaryFolder(async (folder) => {
    const file = join(folder, 'credentials.json');
    const embedded = openCredentials(file, 'embedded');
    embedded.credentials.serviceToken = 'of the embedded one';
    embedded.save();
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const other = openCredentials(file, 'db.example:5432/runhook');
    expect(other.credentials).toEqual({});
    other.credentials.serviceToken = 'of the other one';
    other.save();

    expect(openCredentials(file, 'embedded').credentials.serviceToken).toBe('of the embedded one');
    expect(openCredentials(file, 'db.example:5432/runhook').credentials.serviceToken).toBe(
      'of the other one',
    );
  });
});

test('the name under which npm start stores the credentials of a database contains no password', () => {
  expect(databaseName('postgres://user:secret@db.example/runhook')).toBe('db.example:5432/runhook');
});

test('npm start generates encryption keys once, in a file for its owner only, and does not store configured ones', async () => {
  await inTemporaryFolder(async (folder) => {
    const file = join(folder, 'secrets.json');
    expect(readOrCreateEncryptionKeys(file, 'given:key')).toBe('given:key');
    const made = readOrCreateEncryptionKeys(file, null);
    expect(Buffer.from(made.replace('local:', ''), 'base64')).toHaveLength(32);
    expect(readOrCreateEncryptionKeys(file, null)).toBe(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
