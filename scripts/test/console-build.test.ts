import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { inTemporaryFolder } from './temporary-folder.ts';

type Build = (options: {
  checkout: string;
  step: (name: string, work: () => Promise<void>) => Promise<void>;
  bundle: (folder: string, outDir: string) => Promise<unknown>;
}) => Promise<void>;
// The module is plain JavaScript without types, because it runs before anything is compiled.
const { buildConsole } = (await import(String(new URL('../build/console-build.mjs', import.meta.url)))) as {
  buildConsole: Build;
};

const SCRIPT = `${'console.log("runhook");'.repeat(100)}`;

/** Makes a checkout with a console of one source, and a bundler that counts its calls. */
async function withCheckout(checkout: string) {
  const file = async (path: string, text: string) => {
    await mkdir(join(checkout, path, '..'), { recursive: true });
    await writeFile(join(checkout, path), text);
  };
  await file('packages/console/src/main.tsx', SCRIPT);
  await file('packages/contract/src/index.ts', 'export {};');
  await file('pnpm-lock.yaml', 'lockfileVersion: 9');
  const built: string[] = [];
  const bundle = async (folder: string, outDir: string) => {
    built.push(folder);
    await mkdir(join(outDir, 'assets'), { recursive: true });
    await cp(join(folder, 'src', 'main.tsx'), join(outDir, 'assets', 'main-abc.js'));
  };
  const steps: string[] = [];
  const step = async (name: string, work: () => Promise<void>) => {
    steps.push(name);
    await work();
  };
  const build = () => buildConsole({ checkout, step, bundle });
  return { file, build, built, steps };
}

test('the console is built once, and again after a source, the contract or a package has changed', () =>
  inTemporaryFolder(async (checkout) => {
    const { file, build, built, steps } = await withCheckout(checkout);
    await build();
    await build();
    expect(built).toHaveLength(1);
    expect(steps).toEqual(['building the console']);
    const changes = [
      ['packages/console/src/pages/new.tsx', 'export {};'],
      ['packages/contract/src/index.ts', 'export const changed = 1;'],
      ['pnpm-lock.yaml', 'lockfileVersion: 10'],
    ] as const;
    for (const [index, [path, text]] of changes.entries()) {
      await file(path, text);
      await build();
      await build();
      expect([path, built.length]).toEqual([path, index + 2]);
    }
  }));

test('the console is rebuilt if its folder or the stamp of its sources is missing, and a failed build keeps the last one', () =>
  inTemporaryFolder(async (checkout) => {
    const { build, built } = await withCheckout(checkout);
    await build();
    await rm(join(checkout, 'packages/console/dist'), { recursive: true });
    await build();
    expect(built).toHaveLength(2);
    const step = async (_: string, work: () => Promise<void>) => work();
    const fails = async () => Promise.reject(new Error('broken'));
    await rm(join(checkout, 'packages/console/dist/.built-from'));
    await expect(buildConsole({ checkout, step, bundle: fails })).rejects.toThrow('broken');
    const last = join(checkout, 'packages/console/dist/assets/main-abc.js');
    expect(await readFile(last, 'utf8')).toBe(SCRIPT);
    expect(await readdir(join(checkout, 'packages/console/node_modules'))).toEqual([]);
    await build();
    expect(built).toHaveLength(3);
  }));

test('the build of the console also writes each file compressed with Brotli and with gzip', () =>
  inTemporaryFolder(async (checkout) => {
    const { build } = await withCheckout(checkout);
    await build();
    const path = join(checkout, 'packages/console/dist/assets/main-abc.js');
    expect(brotliDecompressSync(await readFile(`${path}.br`)).toString()).toBe(SCRIPT);
    expect(gunzipSync(await readFile(`${path}.gz`)).toString()).toBe(SCRIPT);
  }));
