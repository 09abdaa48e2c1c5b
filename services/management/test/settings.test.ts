import { describe, expect, test } from '@jest/globals';
import { describeSettings, EnvironmentError } from '@runhook/runtime';
import { readSettings, SECRET_SETTINGS } from '../src/settings.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const REQUIRED = {
  DATABASE_URL: 'postgres://user:pass@db/runhook',
  QUEUE_URL: 'redis://queue',
  ENCRYPTION_KEYS: `new:${KEY},old:${KEY}`,
};

function problemsOf(source: NodeJS.ProcessEnv): readonly string[] {
  try {
    readSettings(source);
    return [];
  } catch (error) {
    if (error instanceof EnvironmentError) return error.problems;
    throw error;
  }
}

describe('the settings', () => {
  test('have defaults except for those that only the operator can know', () => {
    expect(readSettings(REQUIRED)).toEqual({
      databaseUrl: REQUIRED.DATABASE_URL,
      queueUrl: REQUIRED.QUEUE_URL,
      encryptionKeys: [
        { name: 'new', key: Buffer.alloc(32, 7) },
        { name: 'old', key: Buffer.alloc(32, 7) },
      ],
      port: 3000,
      operationsPort: 3004,
      host: '0.0.0.0',
      deliveryTimeoutMs: 10_000,
      deliveryMaxRetries: 5,
      egressAllowCidrs: [],
      egressDenyCidrs: [],
      egressPorts: [],
      egressRequireHttps: false,
      egressSourceAddresses: [],
      apiRateLimitPerMinute: 5_000,
      apiConcurrencyPerAccount: 500,
      subscriptionsPerAccount: 1_000,
      jobsPerAccount: 10_000,
      runStepsBytesPerAccount: 1_000_000_000,
      pendingDeliveriesPerAccount: 100_000,
      idempotencyKeysPerDay: 1_000_000,
      securityContact: [],
      databaseReplicaMaxLagMs: 5_000,
      consoleSessionIdleMinutes: 60,
      consoleSessionMaxHours: 24,
      signInAttemptsPerEmail: 10,
      signInAttemptsPerAddress: 100,
      oidcCreateUsers: false,
      passwordSignIn: 'on',
      trustedProxyCidrs: [],
      logLevel: 'info',
      logRetentionDays: 30,
    });
  });

  test('name what single sign-on lacks, and accept a provider by https or on loopback only', () => {
    const complete = {
      ...REQUIRED,
      OIDC_ISSUER: 'https://login.example.com/realms/x',
      OIDC_CLIENT_ID: 'runhook',
      OIDC_CLIENT_SECRET: 'secret',
      PUBLIC_URL: 'https://runhook.example.com',
    };
    expect(readSettings({ ...complete, PASSWORD_SIGN_IN: 'off' })).toMatchObject({
      oidcIssuer: complete.OIDC_ISSUER,
      passwordSignIn: 'off',
    });
    expect(problemsOf({ ...complete, OIDC_ISSUER: 'http://localhost:8080' })).toEqual([]);
    for (const issuer of ['http://login.example.com', 'https://u:p@login.example.com', 'https://a?b', 'x'])
      expect(problemsOf({ ...complete, OIDC_ISSUER: issuer })).toEqual([
        'OIDC_ISSUER: must be an https URL without credentials, query and fragment',
      ]);
    expect(problemsOf({ ...complete, OIDC_CLIENT_SECRET: '', PUBLIC_URL: '' })).toEqual([
      'OIDC_ISSUER needs OIDC_CLIENT_SECRET, PUBLIC_URL',
    ]);
    expect(problemsOf({ ...REQUIRED, PASSWORD_SIGN_IN: 'off' })).toEqual([
      'PASSWORD_SIGN_IN=off needs OIDC_ISSUER',
    ]);
  });

  test('are read from the environment', () => {
    const source = {
      ...REQUIRED,
      PORT: '0',
      OPERATIONS_PORT: '0',
      HOST: '127.0.0.1',
      DELIVERY_TIMEOUT_MS: '500',
      DELIVERY_MAX_RETRIES: '0',
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8, ::1',
      EGRESS_DENY_CIDRS: '203.0.114.0/24',
      EGRESS_PORTS: '443, 8000-8999',
      EGRESS_REQUIRE_HTTPS: 'true',
      EGRESS_SOURCE_ADDRESSES: '198.51.100.7, 2001:db8::/64',
      DATABASE_REPLICA_URL: 'postgres://replica/runhook',
      DATABASE_REPLICA_MAX_LAG_MS: '500',
      API_RATE_LIMIT_PER_MINUTE: '100',
      API_CONCURRENCY_PER_ACCOUNT: '20',
      JOBS_PER_ACCOUNT: '30',
      IDEMPOTENCY_KEYS_PER_DAY: '40',
      SECURITY_CONTACT: 'mailto:security@example.com, https://example.com/report',
      CONSOLE_SESSION_IDLE_MINUTES: '5',
      CONSOLE_SESSION_MAX_HOURS: '8',
      SIGN_IN_ATTEMPTS_PER_EMAIL: '3',
      SIGN_IN_ATTEMPTS_PER_ADDRESS: '30',
      PUBLIC_URL: 'https://runhook.example.com',
      TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
      LOG_LEVEL: 'silent',
    };
    expect(readSettings(source)).toMatchObject({
      port: 0,
      host: '127.0.0.1',
      deliveryTimeoutMs: 500,
      deliveryMaxRetries: 0,
      egressAllowCidrs: ['127.0.0.0/8', '::1/128'],
      egressDenyCidrs: ['203.0.114.0/24'],
      egressPorts: [
        { first: 443, last: 443 },
        { first: 8_000, last: 8_999 },
      ],
      egressRequireHttps: true,
      egressSourceAddresses: ['198.51.100.7/32', '2001:db8::/64'],
      databaseReplicaUrl: 'postgres://replica/runhook',
      databaseReplicaMaxLagMs: 500,
      apiRateLimitPerMinute: 100,
      apiConcurrencyPerAccount: 20,
      jobsPerAccount: 30,
      idempotencyKeysPerDay: 40,
      securityContact: ['mailto:security@example.com', 'https://example.com/report'],
      consoleSessionIdleMinutes: 5,
      consoleSessionMaxHours: 8,
      signInAttemptsPerEmail: 3,
      signInAttemptsPerAddress: 30,
      publicUrl: 'https://runhook.example.com',
      trustedProxyCidrs: ['10.0.0.0/8'],
      logLevel: 'silent',
    });
  });

  test('report all invalid variables together, by name and without secrets', () => {
    const problems = problemsOf({
      DATABASE_URL: 'mysql://user:dbsecret@db',
      QUEUE_URL: 'amqp://queuesecret',
      ENCRYPTION_KEYS: 'k:keysecret',
      PORT: '70000',
      DELIVERY_MAX_RETRIES: '-1',
      EGRESS_ALLOW_CIDRS: 'everything',
      EGRESS_DENY_CIDRS: '10.0.0.0/33',
      EGRESS_PORTS: '443,0-80',
      EGRESS_CLIENT_CERT: 'certsecret',
      EGRESS_CLIENT_KEY: 'keysecret',
      EGRESS_SOURCE_ADDRESSES: 'our office',
      LOG_LEVEL: 'loud',
    });
    const names = problems.map((problem) => problem.split(/[ :]/)[0]).sort();
    expect(names).toEqual([
      'DATABASE_URL',
      'DELIVERY_MAX_RETRIES',
      'EGRESS_ALLOW_CIDRS',
      'EGRESS_CLIENT_CERT',
      'EGRESS_CLIENT_KEY',
      'EGRESS_DENY_CIDRS',
      'EGRESS_PORTS',
      'EGRESS_SOURCE_ADDRESSES',
      'ENCRYPTION_KEYS',
      'LOG_LEVEL',
      'PORT',
      'QUEUE_URL',
    ]);
    expect(problems.join()).toMatch(/EGRESS_PORTS.*"0-80" is not a port or a range of ports/);
    expect(problems.join()).not.toMatch(/secret/);
  });

  test('show no secret in the log line of the start', () => {
    const line = JSON.stringify(describeSettings(readSettings(REQUIRED), SECRET_SETTINGS));
    expect(line).toContain('"encryptionKeysConfigured":true');
    expect(line).not.toContain(KEY);
    expect(line).not.toContain('user:pass');
  });
});
