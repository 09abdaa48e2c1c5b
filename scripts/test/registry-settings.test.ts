import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { registryMounts } from '../src/image/registry-settings.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

const environment = process.env;
beforeEach(() => {
  const isKept = (name: string) => !/^npm_config_|^NODE_EXTRA_CA_CERTS$/i.test(name);
  process.env = Object.fromEntries(Object.entries(environment).filter(([name]) => isKept(name)));
});
afterEach(() => {
  process.env = environment;
});

test('a build reaches the registry as npm does here: its files, then its environment, and nothing else of them', () =>
  inTemporaryFolder(async (folder) => {
    const authorities = join(folder, 'authorities.pem');
    writeFileSync(authorities, 'certificates');
    writeFileSync(
      join(folder, 'user'),
      `; a comment\nregistry = https://packages.example/\nprefix=/opt\ncafile=${authorities}\n` +
        // biome-ignore lint/suspicious/noTemplateCurlyInString: npm replaces it
        '//packages.example/:_authToken=${PACKAGES_TOKEN}\n@ours:registry=https://ours.example/\n',
    );
    Object.assign(process.env, {
      PACKAGES_TOKEN: 'token',
      npm_config_strict_ssl: 'true',
      npm_config_cache: '/x',
    });
    const files: Record<string, string> = { userconfig: 'user', globalconfig: 'not-there' };
    const npm = async (_: string, args: readonly string[]) =>
      `${join(folder, files[args.at(-1) ?? ''] ?? '')}\n`;

    expect(await registryMounts(folder, npm)).toEqual([
      '--volume',
      `${authorities}:/run/registry-authorities.pem:ro`,
      '--volume',
      `${join(folder, 'npmrc')}:/root/.npmrc:ro`,
    ]);
    expect(readFileSync(join(folder, 'npmrc'), 'utf8').trim().split('\n')).toEqual([
      'registry=https://packages.example/',
      '//packages.example/:_authToken=token',
      '@ours:registry=https://ours.example/',
      'strict-ssl=true',
      'cafile=/run/registry-authorities.pem',
    ]);
  }));
