import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { dockerfile, stages } from './dockerfile.ts';
import { checkout } from './manifests.ts';

// These checks need no build. `npm run prove -- image` builds and runs the images.
const SERVICES = ['management', 'dispatcher', 'migrate'];
// The module is plain JavaScript without types.
const { bundledPrograms } = (await import(join(checkout, 'scripts', 'build', 'service-bundle.mjs'))) as {
  bundledPrograms: () => string[];
};
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');
const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const manifestOf = (folder: string) => JSON.parse(read(join(folder, 'package.json')));

/** Paths that .dockerignore includes, with everything below them. */
const contextFiles = lines(read('.dockerignore'))
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));
const isInContext = (path: string) =>
  contextFiles.some((allowed) => path === allowed || path.startsWith(`${allowed}/`));

test('every path that the Dockerfile copies exists and is in the build context', () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) =>
    paths.split(' '),
  );
  const used = [...dockerfile.matchAll(/(?:\s|\/src\/)((?:scripts|prisma|services)\/[\w./-]+)/g)].map(
    ([, path = '']) => path,
  );
  const needed = [...copied.filter((path) => path !== '.'), ...used, 'tsconfig.base.json', 'package.json'];
  expect(needed).toEqual(
    expect.arrayContaining(['pnpm-lock.yaml', 'scripts/build/prune-image.mjs', 'prisma/migrations']),
  );
  for (const path of [...needed, ...contextFiles])
    expect([path, existsSync(join(checkout, path))]).toEqual([path, true]);
  for (const path of needed) expect([path, isInContext(path)]).toEqual([path, true]);
});

test('the build context has the package.json of every package that it has files of, because pnpm requires it', () => {
  const [, importers = ''] = /^importers:\n(.*?)^packages:/ms.exec(read('pnpm-lock.yaml')) ?? [];
  const folders = [...importers.matchAll(/^ {2}(\S+):$/gm)].map(([, folder = '']) => folder);
  expect(folders).toEqual(expect.arrayContaining(SERVICES.map((name) => `services/${name}`)));
  const partialImports = folders.filter(
    (folder) => isInContext(folder) || contextFiles.some((path) => path.startsWith(`${folder}/`)),
  );
  expect(partialImports).toContain('scripts');
  expect(partialImports.filter((folder) => !isInContext(join(folder, 'package.json')))).toEqual([]);
});

test('.dockerignore includes no path with a star, which some builders do not support', () => {
  expect(contextFiles.filter((path) => path.includes('*'))).toEqual([]);
});

test('every program that an image starts is made by the build of that image', () => {
  expect(dockerfile).toMatch(/tsc --build .*\n && node scripts\/build\/service-bundle\.mjs/);
  const bundled = bundledPrograms();
  const isMade = (service: string, program: string) => {
    const folder = join(checkout, 'services', service);
    const source = program.replace(/^dist/, 'src').replace(/\.js$/, '.ts');
    return bundled.includes(join(folder, program)) || existsSync(join(folder, source));
  };
  const cmd = /^CMD \["(\S+)"\]$/m.exec(stages.get('runtime') ?? '')?.[1] ?? '';
  for (const service of SERVICES) {
    expect([service, isMade(service, cmd)]).toEqual([service, true]);
    expect(manifestOf(join('services', service)).files).toContain('dist/**/*.js');
    expect(stages.get(service)).toContain(`COPY --from=build /out/${service} ./`);
    expect(stages.get('build')).toContain(
      `--filter @runhook/${service} deploy --prod --ignore-scripts /out/${service}`,
    );
  }
  for (const file of ['docker-compose.yml', 'docs/deployment.md', 'docs/administration.md', 'Dockerfile']) {
    const programs = [...read(file).matchAll(/\bdist\/[\w/-]+\.js\b/g)].map(([program]) => program);
    const unmade = programs.filter((program) => !SERVICES.some((service) => isMade(service, program)));
    expect([file, unmade]).toEqual([file, []]);
  }
});

test('every package has the version of the root package.json, or gets it when it is packed', () => {
  const { version } = manifestOf('.');
  const others = ['packages', 'services', 'examples', '.']
    .flatMap((folder) => readdirSync(join(checkout, folder)).map((name) => join(folder, name)))
    .filter((folder) => existsSync(join(checkout, folder, 'package.json')))
    .filter((folder) => {
      const { version: own = version, publishConfig } = manifestOf(folder);
      return own !== (publishConfig === undefined ? version : '0.0.0');
    });
  expect(others).toEqual([]);
});

test('the versions of pnpm, of the release and of Node agree in all files', () => {
  const pnpm = /pnpm@[\d.]+/;
  expect(pnpm.exec(dockerfile)?.[0]).toBe(pnpm.exec(read('scripts/build/bootstrap.mjs'))?.[0]);
  const { version, engines } = manifestOf('.');
  expect(dockerfile).toContain(`ARG VERSION=${version}\n`);
  expect(read('packages/client/src/client.ts')).toContain(`VERSION = '${version}'`);
  expect(read('k8s/production-base/kustomization.yaml').match(/(?<=newTag: ).*/g)).toEqual(
    SERVICES.map(() => version),
  );
  expect(read('k8s/chart/Chart.yaml').match(/(?<=ersion: )\d.*/g)).toEqual([version, version]);
  const bases = [...dockerfile.matchAll(/^FROM ([^\s@]+:[^\s@]+)(@sha256:\S+)?/gm)].map(([, base]) => base);
  expect(bases).toEqual([expect.stringMatching(/^node:\d+\.\d+\.\d+-[a-z]+-slim$/)]);
  const major = Number(/node:(\d+)/.exec(dockerfile)?.[1]);
  expect(major).toBeGreaterThan(Number.parseInt(engines.node.replace(/^\D+/, ''), 10));
  expect(read('docs/deployment.md')).toContain(`\`${bases[0]}\``);
});

test('every image runs node as process 1 with a numeric user, and those of services have the flags of the start script and a health check', () => {
  expect(stages.get('runtime')).toMatch(/^ENTRYPOINT \["node", /m);
  expect(stages.get('runtime')).toMatch(/^USER ([1-9]\d*):\1$/m);
  for (const service of SERVICES) {
    const stage = stages.get(service) ?? '';
    expect(stage).toMatch(/^FROM runtime AS /);
    expect(stage).not.toMatch(/^(RUN|USER|ENTRYPOINT|ADD) /m);
    const settings = join('services', service, 'src', 'settings.ts');
    const port = /PORT: .*default\((\d)_(\d{3})\)/.exec(service === 'migrate' ? '' : read(settings));
    const command = /^CMD (\[.*\])$/m.exec(stage)?.[1];
    if (service === 'migrate') {
      expect(command).toBeUndefined();
      expect(stage).toMatch(/^HEALTHCHECK NONE$/m);
    } else {
      const { start } = manifestOf(join('services', service)).scripts;
      const environment = /^ENV (MALLOC_ARENA_MAX=\d)$/m.exec(stages.get('runtime') ?? '')?.[1];
      expect([environment, 'node', ...JSON.parse(command ?? '[]')].join(' ')).toBe(start);
      expect(stage).toMatch(new RegExp(`^EXPOSE ${port?.[1]}${port?.[2]}$`, 'm'));
      expect(stage).toMatch(
        new RegExp(`^  CMD \\["node", .*PORT \\|\\| ${port?.[1]}${port?.[2]}}/healthz`, 'm'),
      );
    }
  }
});

test('every module that a package or service imports at run time is one of its dependencies', () => {
  const imports = /^(?:import|export|\}) (?!type )(?:[^'\n]* from )?'((?:@[\w-]+\/)?[a-z][\w.-]*)[/']/gm;
  const packages = readdirSync(join(checkout, 'packages'))
    .filter((name) => !['console', 'embedded', 'testing'].includes(name))
    .map((name) => join('packages', name))
    .filter((folder) => existsSync(join(checkout, folder, 'package.json')));
  const undeclared = [...packages, ...SERVICES.map((name) => join('services', name))].flatMap((folder) => {
    const { name, dependencies = {} } = manifestOf(folder);
    return readdirSync(join(checkout, folder, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.startsWith('generated'))
      .flatMap((path) => [...read(join(folder, 'src', path)).matchAll(imports)])
      .map(([, imported = '']) => imported)
      .filter((imported) => imported !== name && !(imported in dependencies))
      .map((imported) => `${imported} in ${folder}`);
  });
  expect(undeclared).toEqual([]);
});
