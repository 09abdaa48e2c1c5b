import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Exec } from './buildah.ts';

/** Settings of npm that tell how a registry is reached. The others are about this machine. */
const REACHES_REGISTRY = /^(\/\/.*|(.*:)?registry|(https?-|no)?proxy|ca|cert|key|strict-ssl|fetch-.*)$/;
const AUTHORITIES = '/run/registry-authorities.pem';

/**
 * Mounts that let a build reach the registry as this machine does, through its npm's files and environment, without
 * becoming part of an image.
 *
 * @param folder gets the files
 * @returns arguments of `buildah build`
 */
export async function registryMounts(folder: string, exec: Exec): Promise<string[]> {
  const lines: string[] = [];
  let authorities = process.env.NODE_EXTRA_CA_CERTS;
  const take = (name: string, value: string) => {
    if (name === 'cafile') authorities = value;
    else if (REACHES_REGISTRY.test(name)) lines.push(`${name}=${value}`);
  };
  for (const kind of ['globalconfig', 'userconfig']) {
    const file = (await exec('npm', ['--silent', 'config', 'get', kind])).trim();
    if (!existsSync(file)) continue;
    for (const [, name = '', value = ''] of readFileSync(file, 'utf8').matchAll(
      /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/gm,
    ))
      take(
        name,
        value.replace(/\$\{(\w+)\}/g, (_, variable) => process.env[variable] ?? ''),
      );
  }
  for (const [name, value = ''] of Object.entries(process.env)) {
    const setting = /^npm_config_(.+)$/i.exec(name)?.[1];
    if (setting !== undefined)
      take(setting.startsWith('//') ? setting : setting.toLowerCase().replaceAll('_', '-'), value);
  }

  const mounts: string[] = [];
  if (authorities !== undefined && existsSync(authorities)) {
    mounts.push('--volume', `${authorities}:${AUTHORITIES}:ro`);
    lines.push(`cafile=${AUTHORITIES}`);
  }
  const settings = join(folder, 'npmrc');
  writeFileSync(settings, `${lines.join('\n')}\n`, { mode: 0o600 });
  return [...mounts, '--volume', `${settings}:/root/.npmrc:ro`];
}
