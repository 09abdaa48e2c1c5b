import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { stages } from './dockerfile.ts';
import { checkout } from './manifests.ts';
import { composeProblems } from './schema-problems.ts';

const text = readFileSync(join(checkout, 'docker-compose.yml'), 'utf8');
const compose = parse(text, { merge: true });
const services = compose.services as Record<string, Record<string, never>>;
const ONE_SHOT = ['secrets', 'migrate'];

interface Service {
  image: string;
  build?: { target: string };
  restart: string;
  healthcheck?: object;
  depends_on?: Record<string, { condition: string }>;
  environment?: Record<string, string>;
  networks?: string[];
  volumes?: string[];
  profiles?: string[];
  ports?: string[];
  container_name?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
}

const service = (name: string) => services[name] as unknown as Service;
const names = Object.keys(services);

test('docker-compose.yml matches the schema of the Compose Specification', () => {
  expect(composeProblems(compose)).toEqual([]);
  expect(composeProblems({ services: { a: { image: 'b', portz: [] } } })).not.toEqual([]);
});

test('docker compose accepts docker-compose.yml, if it is installed', () => {
  if (spawnSync('docker', ['compose', 'version']).status !== 0) {
    process.stderr.write('\ndocker compose is not installed: its check of the file was skipped\n');
    return;
  }
  const { status, stderr } = spawnSync('docker', ['compose', '--profile', 'demo', 'config', '--quiet'], {
    cwd: checkout,
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '' },
  });
  expect([status, stderr]).toEqual([0, '']);
});

test('docker-compose.yml requires no variable, and gives no secret a default', () => {
  expect(text).not.toMatch(/\$\{[A-Z_]+:?\?/);
  const defaults = [...text.matchAll(/\$\{([A-Z_]+):-([^}]*)\}/g)].filter(([, , value]) => value !== '');
  expect(defaults.map(([, name]) => name).sort()).toEqual([
    'QUEUE_URL',
    'QUEUE_URL',
    'RUNHOOK_LISTEN',
    'RUNHOOK_PORT',
  ]);
});

test('docker-compose.yml starts the migration when the database is ready, and the services when the migration has ended', () => {
  expect(service('postgres').depends_on).toEqual({
    secrets: { condition: 'service_completed_successfully' },
  });
  expect(service('migrate').depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  for (const name of ['management', 'dispatcher']) {
    expect(service(name).depends_on).toEqual({
      migrate: { condition: 'service_completed_successfully' },
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    });
  }
  for (const name of ONE_SHOT) expect(service(name).restart).toBe('no');
});

test('every long-running service of docker-compose.yml has a health check, there or in its image', () => {
  for (const name of names.filter((name) => !ONE_SHOT.includes(name))) {
    const target = service(name).build?.target;
    const healthcheck =
      service(name).healthcheck ?? (target && /^HEALTHCHECK --/m.test(stages.get(target) ?? ''));
    expect([name, Boolean(healthcheck)]).toEqual([name, true]);
  }
});

test('docker compose can scale the dispatcher, because it has no fixed name and no port of the host', () => {
  expect(service('dispatcher').container_name).toBeUndefined();
  expect(service('dispatcher').ports).toBeUndefined();
});

test('docker-compose.yml builds images of this repository from targets of the Dockerfile, and names others with a version', () => {
  for (const name of names) {
    const { image, build } = service(name);
    if (image.startsWith('runhook/')) {
      expect(image).toBe(`runhook/${build?.target}`);
      expect([...stages.keys()]).toContain(build?.target);
    } else expect(image).toMatch(/^[a-z]+:\d+[\w.-]*(@sha256:[0-9a-f]{64})?$/);
  }
});

test('no container of docker-compose.yml writes outside its volumes, gains privileges or keeps an unneeded capability', () => {
  const kubernetesCapabilities = Object.fromEntries(
    names.map((name) => [name, (services[name] as { cap_add?: string[] }).cap_add]),
  );
  expect(kubernetesCapabilities).toEqual({
    ...Object.fromEntries(names.map((name) => [name, undefined])),
    postgres: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
  });
  for (const name of names) {
    expect(service(name)).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
  }
});

test('docker-compose.yml declares every volume and network in use, and its data network is internal', () => {
  for (const name of names) {
    for (const volume of service(name).volumes ?? []) {
      const [source = ''] = volume.split(':');
      if (!source.startsWith('.')) expect(Object.keys(compose.volumes)).toContain(source);
    }
    for (const network of service(name).networks ?? [])
      expect(Object.keys(compose.networks)).toContain(network);
  }
  expect(compose.networks.data.internal).toBe(true);
  expect(service('postgres').networks).toEqual(['data']);
  expect(service('redis').networks).toEqual(['data']);
});

test('docker-compose.yml gives the services time to finish their work in flight, and makes Redis durable', () => {
  for (const name of ['management', 'dispatcher']) {
    expect(Number.parseInt(service(name).stop_grace_period ?? '', 10)).toBeGreaterThan(10 + 15);
  }
  const command = (services.redis as unknown as { command: string[] }).command.join(' ');
  expect(command).toContain('--appendonly yes');
  expect(command).toContain('--maxmemory-policy noeviction');
});

test('only the demo receiver of docker-compose.yml is in a profile', () => {
  expect(names.filter((name) => service(name).profiles !== undefined)).toEqual(['receiver']);
});
