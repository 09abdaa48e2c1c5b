import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const { compile } = (await import(String(new URL('../build/compile.mjs', import.meta.url)))) as {
  compile(
    projects: string[],
    signal: AbortSignal | undefined,
    workspace: { checkout: string; folders: string[] },
  ): Promise<string>;
};

let checkout: string;
const makeFolder = () => mkdtempSync(join(tmpdir(), 'runhook-compile-'));

beforeEach(() => {
  checkout = makeFolder();
  const compilerOptions = {
    ...{
      composite: true,
      module: 'nodenext',
      target: 'es2023',
      types: [],
      strict: true,
      lib: ['es5'],
      skipLibCheck: true,
    },
    ...{ rootDir: 'src', outDir: 'dist', rewriteRelativeImportExtensions: true },
  };
  const exports = { './*': { types: './dist/*.d.ts', default: './dist/*.js' } };
  put('library/package.json', JSON.stringify({ name: 'library', type: 'module', exports }));
  put('library/tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
  put('library/src/double.ts', 'export const double = (value: number): number => value * 2;\n');
  put('service/package.json', JSON.stringify({ type: 'module' }));
  const references = [{ path: '../library' }];
  put('service/tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'], references }));
  put(
    'service/src/main.ts',
    "import { double } from 'library/double';\nexport const four: number = double(2);\n",
  );
  put('tsconfig.json', JSON.stringify({ files: [], references: [{ path: 'library' }, { path: 'service' }] }));
  mkdirSync(join(checkout, 'service/node_modules'), { recursive: true });
  symlinkSync(join(checkout, 'library'), join(checkout, 'service/node_modules/library'));
});

afterEach(() => rmSync(checkout, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), text);
}

/** Returns the codes of the type errors. */
async function errors(): Promise<string[]> {
  const workspace = { checkout, folders: ['library', 'service'] };
  const output = await compile([], undefined, workspace).catch(({ message }: Error) => message);
  return [...output.matchAll(/error (TS\d+)/g)].map(([, code]) => code as string);
}

test('the type check reports after each edit what it would report in a fresh clone', async () => {
  expect(await errors()).toEqual([]);

  put(
    'library/src/double.ts',
    'export const double = (value: number, more: number): number => value * more;\n',
  );
  expect(await errors()).toEqual(['TS2554']);
  expect(await errors()).toEqual(['TS2554']);

  const library = join(checkout, 'library/src/double.ts');
  renameSync(library, join(checkout, 'aside.ts'));
  put('library/src/triple.ts', 'export const triple = (value: number): number => value * 3;\n');
  expect(await errors()).toEqual(['TS2307']);

  put('aside.ts', 'export const double = (value: number): number => value * 2;\n');
  const old = new Date('2020-01-01T00:00:00Z');
  utimesSync(join(checkout, 'aside.ts'), old, old);
  renameSync(join(checkout, 'aside.ts'), library);
  expect(await errors()).toEqual([]);
});
