import { afterAll, beforeAll, expect } from '@jest/globals';
import { createAccount } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createLogger, Lifecycle } from '@runhook/runtime';
import { createTestDatabase, createTestQueueUrl, WAIT_TIMEOUT_MS } from '@runhook/testing';
import {
  findFreePort,
  type IdentityProvider,
  startIdentityProvider,
} from '@runhook/testing/identity-provider';
import type { Browser, Page } from 'playwright-core';
import { createManagement } from '../../services/management/src/app.ts';
import { readSettings } from '../../services/management/src/settings.ts';
import { TEST_SETTINGS } from '../services.ts';
import { hasBrowser, launchBrowser, testInBrowser } from './support/browser.ts';
import { openContext } from './support/contexts.ts';
import { withScreenshot } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';
import { START_TIMEOUT_MS, STORY_TIMEOUT_MS } from './support/waiting.ts';

const SUBJECT = 'grace';
const CLAIM = 'runhook_accounts';

let url: string;
let database: PrismaDatabase;
let provider: IdentityProvider;
let browser: Browser;
let accounts: { enterprise: { id: number }; team: { id: number } };
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  if (!hasBrowser) return;
  const { port } = await findFreePort();
  url = `http://127.0.0.1:${port}`;
  const paths = `${url}/api/v3/session/oidc`;
  // On another host name than the console, so that its redirect is a navigation from another site.
  provider = await startIdentityProvider({
    redirectUri: `${paths}/callback`,
    logoutUri: `${paths}/logout`,
    claims: [CLAIM],
  });
  closers.push(() => provider.close());
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const { prisma } = database;
  const deployment = 'multi_tenant';
  accounts = {
    enterprise: await createAccount(prisma, { name: 'Aurora', plan: 'enterprise', deployment }),
    team: await createAccount(prisma, { name: 'Borealis', plan: 'team', deployment }),
  };
  const logger = createLogger({ service: 'management', level: 'silent' });
  const lifecycle = new Lifecycle({ logger });
  closers.push(() => lifecycle.close('the test ends'));
  const settings = readSettings({
    ...TEST_SETTINGS,
    DATABASE_URL: testDatabase.url,
    QUEUE_URL: await createTestQueueUrl({ name: 'PostgreSQL' }, testDatabase.url),
    PORT: String(port),
    PUBLIC_URL: url,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
    OIDC_CLAIM_ACCOUNTS: CLAIM,
    OIDC_CREATE_USERS: 'true',
    PASSWORD_SIGN_IN: 'off',
  });
  await createManagement(settings, { process: { logger, lifecycle } });
  browser = await launchBrowser();
  closers.push(() => browser.close());
}, START_TIMEOUT_MS);

afterAll(async () => {
  for (const close of closers.reverse()) await close();
}, START_TIMEOUT_MS);

testInBrowser(
  'a user signs in at the identity provider, and loses session and API key when it ends the access',
  async () => {
    const watched = await openContext(browser, url);
    watched.ownOrigins.push(provider.issuer);
    const page = await watched.context.newPage();
    try {
      allowAccess();
      await signInWithTwoAccounts(page);
      await seeOwnSession(page);
      const apiKey = await readApiKey(page);

      // By the refresh token alone.
      provider.revoke(SUBJECT);
      await letAMinutePass();
      await expectNoAccess(page, apiKey);
      // The provider has ended its session, too.
      await watched.context.clearCookies({ domain: 'localhost' });
      await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
      await page
        .getByRole('alert')
        .getByText('The identity provider did not confirm your sign-in.')
        .waitFor();

      allowAccess();
      await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
      await headingOf(page, 'API Access');
      expect(await readApiKey(page)).toBe(apiKey);
      expect(await statusWithKey(apiKey)).toBe(200);

      // By a logout token, without waiting.
      provider.revoke(SUBJECT);
      await provider.logOut(SUBJECT);
      await expectNoAccess(page, apiKey);
      expect(watched.problems).toEqual([]);
    } catch (error) {
      throw await withScreenshot(error, page, 'single sign-on', watched.problems);
    } finally {
      await watched.release();
    }
  },
  STORY_TIMEOUT_MS,
);

function allowAccess(): void {
  provider.setUser(SUBJECT, {
    name: 'Grace Hopper',
    email: 'grace@provider.example',
    email_verified: true,
    [CLAIM]: [
      { account: accounts.enterprise.id, permission_sets: ['developer'] },
      { account: accounts.team.id, permission_sets: [], license: 'read_only' },
    ],
  });
  provider.signInAs(SUBJECT);
}

/** A check is valid for a minute by PostgreSQL's clock. */
async function letAMinutePass(): Promise<void> {
  await database.pool.query("UPDATE oidc_identities SET check_due_at = check_due_at - interval '1 minute'");
}

async function signInWithTwoAccounts(page: Page): Promise<void> {
  await page.goto(`${url}/profile/api-access`);
  await headingOf(page, 'Sign in');
  const button = page.getByRole('link', { name: 'Sign in with single sign-on' });
  await button.waitFor();
  expect(await page.getByLabel('Password').count()).toBe(0);
  await button.click();
  // The page that the user opened first.
  await headingOf(page, 'API Access');
  await page.getByRole('button', { name: 'You: Grace Hopper' }).waitFor();
  await page.goto(`${url}/accounts/${accounts.team.id}/settings/webhooks`);
  await page.getByRole('button', { name: 'Account: Borealis Team' }).waitFor();
  await headingOf(page, 'Webhooks');
  expect(await page.getByRole('link', { name: 'Create New Webhook' }).count()).toBe(0);
  await page.goto(`${url}/accounts/${accounts.enterprise.id}/settings/webhooks`);
  await page.getByRole('button', { name: 'Account: Aurora Enterprise' }).waitFor();
  await page.getByRole('link', { name: 'Create New Webhook' }).first().waitFor();
}

/** The session has address and browser, and there is no password to change. */
async function seeOwnSession(page: Page): Promise<void> {
  await page.goto(`${url}/profile/security`);
  await headingOf(page, 'Security');
  await page.getByText('127.0.0.1').first().waitFor();
  await page.getByText('Sessions of grace@provider.example.').waitFor();
  expect(await page.getByLabel('Current password').count()).toBe(0);
}

async function readApiKey(page: Page): Promise<string> {
  await page.goto(`${url}/profile/api-access`);
  await headingOf(page, 'API Access');
  await page.getByRole('button', { name: 'Reveal' }).click();
  const key = page.getByTestId('api-key').filter({ hasText: /^rhu_[0-9A-Za-z]{49}$/ });
  return (await key.textContent()) ?? '';
}

async function statusWithKey(apiKey: string): Promise<number> {
  const headers = { authorization: `Token ${apiKey}` };
  return (await fetch(`${url}/api/v3/accounts`, { headers })).status;
}

async function expectNoAccess(page: Page, apiKey: string): Promise<void> {
  expect(await statusWithKey(apiKey)).toBe(401);
  await page.goto(`${url}/profile/api-access`);
  await headingOf(page, 'Sign in');
  const response = await fetch(`${url}/api/v3/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'grace@provider.example', password: 'correct horse battery staple' }),
  });
  expect(response.status).toBe(403);
}
