import { expect } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { describeConsole } from '../support/describe-console.ts';
import { expectCopied, headingOf } from '../support/page-parts.ts';
import { PASSWORD } from '../support/people.ts';
import { subscribe, webhookApiOf } from '../support/webhooks.ts';

const MASKED = /^rhu_•+.{4}$/;

describeConsole('the pages of the profile and of administrators', (story) => {
  story(
    'masks the API key until it is revealed, and copies it without showing it',
    async ({ page, urlOf, signInAs, world }) => {
      const { apiKey } = world.persons.rita;
      await signInAs('rita');
      await page.goto(urlOf('/profile/api-access'));
      const key = page.getByTestId('api-key');
      await key.waitFor();
      expect(await key.textContent()).toMatch(MASKED);
      expect(await page.content()).not.toContain(apiKey);
      await page.getByRole('button', { name: 'Copy the API key' }).click();
      await expectCopied(page, apiKey);
      expect(await page.content()).not.toContain(apiKey);

      await page.getByRole('button', { name: 'Reveal' }).click();
      expect(await key.textContent()).toBe(apiKey);
      await page.getByRole('button', { name: 'Hide' }).click();
      expect(await key.textContent()).toMatch(MASKED);

      await page.getByRole('button', { name: 'Copy The webhooks of Test account' }).click();
      const sample = await expectCopied(page, /^curl -s /);
      const url = /'(http[^']+)'/.exec(sample)?.[1] ?? '';
      const authorization = /Authorization: ([^']+)'/.exec(sample)?.[1] ?? '';
      expect((await fetch(url, { headers: { authorization } })).status).toBe(200);
    },
  );

  story(
    'asks before it rotates the API key, shows the new one, and the old one is rejected afterwards',
    async ({ page, urlOf, signInAs, world }) => {
      const { apiKey } = world.persons.tom;
      await signInAs('tom');
      await page.goto(urlOf('/profile/api-access'));
      await page.getByRole('button', { name: 'Rotate the key…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Rotate your API key?' });
      await dialog.getByText(/stop working until they have the new one/).waitFor();
      await dialog.getByRole('button', { name: 'Keep the key' }).click();
      await dialog.waitFor({ state: 'hidden' });
      expect(await fetchStatus(urlOf, apiKey)).toBe(200);

      await page.getByRole('button', { name: 'Rotate the key…' }).click();
      await dialog.getByRole('button', { name: 'Rotate the key' }).click();
      await page.getByText('The key was rotated').waitFor();
      const next = (await page.getByTestId('api-key').textContent()) ?? '';
      expect(next).toMatch(/^rhu_/);
      expect([await fetchStatus(urlOf, apiKey), await fetchStatus(urlOf, next)]).toEqual([401, 200]);
      await page.reload();
      await headingOf(page, 'API Access');
      await page.getByRole('button', { name: 'Reveal' }).click();
      expect(await page.getByTestId('api-key').textContent()).toBe(next);
    },
  );

  story(
    'does not rotate an API key again that was rotated elsewhere meanwhile, and shows the new one',
    async ({ page, urlOf, signInAs, world }) => {
      const { id, apiKey } = world.persons.fred;
      await signInAs('fred');
      await page.goto(urlOf('/profile/api-access'));
      await page.getByTestId('api-key').waitFor();
      const otherRotation = await fetch(urlOf(`/api/v2/users/${id}/apikey/`), {
        method: 'POST',
        headers: { authorization: `Token ${apiKey}` },
      });
      const { data } = (await otherRotation.json()) as { data: { api_key: string } };
      await page.getByRole('button', { name: 'Rotate the key…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate the key' }).click();
      await page.getByRole('alert').getByText('The key was already rotated').waitFor();
      await page.getByRole('button', { name: 'Reveal' }).click();
      expect(await page.getByTestId('api-key').textContent()).toBe(data.api_key);
      expect(await fetchStatus(urlOf, data.api_key)).toBe(200);
    },
  );

  story('reports errors of loading and of rotating the API key', async ({ page, urlOf, signInAs }) => {
    await signInAs('ada');
    await page.route('**/api/v3/profile', (route) => route.fulfill({ status: 500, json: {} }));
    await page.goto(urlOf('/profile/api-access'));
    await page.getByText('The API key could not be loaded').waitFor();
    await page.unroute('**/api/v3/profile');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByTestId('api-key').waitFor();
    await page.route('**/apikey', (route) => route.abort());
    await page.getByRole('button', { name: 'Rotate the key…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate the key' }).click();
    await page.getByRole('dialog').getByText('The key was not rotated').waitFor();
  });

  story(
    'changes the password with the current one, which ends the other sessions',
    async ({ page, urlOf, signInAs, world }) => {
      const { email } = world.persons.petra;
      const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
      const signIn = (password: string) =>
        fetch(urlOf('/api/v3/session'), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'user-agent': userAgent },
          body: JSON.stringify({ email, password }),
        });
      await signIn(PASSWORD);
      await signInAs('petra', { fresh: true });
      await page.goto(urlOf('/profile/security'));
      const sessions = page.getByRole('table', { name: 'Sessions' }).getByRole('row');
      const other = sessions.filter({ hasText: 'Firefox on Linux' }).filter({ hasText: '127.0.0.1' });
      await other.waitFor();
      await page.getByLabel('Current password', { exact: true }).fill('wrong');
      await page.getByLabel('New password', { exact: true }).fill('another pass phrase');
      await page.getByRole('button', { name: 'Change the password' }).click();
      await page.getByText('Current password is not your current password.').waitFor();
      await page.getByLabel('Current password', { exact: true }).fill(PASSWORD);
      await page.getByRole('button', { name: 'Change the password' }).click();
      await page.getByText('The password was changed. Other sessions ended: 1.').waitFor();
      await other.waitFor({ state: 'detached' });
      expect([(await signIn(PASSWORD)).status, (await signIn('another pass phrase')).status]).toEqual([
        401, 201,
      ]);
      await page.reload();
      await other.getByRole('button', { name: 'End' }).click();
      await other.waitFor({ state: 'detached' });
    },
  );

  story('signs out everywhere after a confirmation', async ({ page, urlOf, signInAs }) => {
    await signInAs('nina', { fresh: true });
    await page.goto(urlOf('/profile/security'));
    await page.getByRole('button', { name: 'Sign out everywhere…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
    await headingOf(page, 'Sign in');
  });

  story('lists the service tokens with their last use for administrators', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    const accountId = world.accounts.enterprise.id;
    const token = { accountId, name: 'CI', permissionSets: ['job_runner' as const] };
    await createServiceToken(world.database.prisma, token);
    await signInAs('ada');
    await page.goto(urlOf(`/accounts/${accountId}/settings/webhooks`));
    await page.getByRole('link', { name: 'Service tokens' }).click();
    await headingOf(page, 'Service tokens');
    const rows = page.getByRole('table', { name: 'Service tokens' }).getByRole('row');
    await rows.filter({ hasText: /CI.*Active.*job_runner.*never/ }).waitFor();
  });

  story(
    'shows the audit log, with users and addresses, to administrators, and hides it from other users',
    async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { name: 'Watched' });
      await world.call('ada', 'POST', webhookApiOf(world, id, 'rotate-secret'));
      await signInAs('ada');
      await page.goto(urlOf('/'));
      await page.getByRole('link', { name: 'Audit log' }).click();
      await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor();
      const rows = page.getByRole('table', { name: 'Changes' }).getByRole('row');
      await rows
        .filter({ hasText: world.persons.ada.email })
        .filter({ hasText: 'rotated the secret of “Watched”' })
        .waitFor();
      await rows.filter({ hasText: 'created “Watched”' }).waitFor();
      await rows.filter({ hasText: 'signed in' }).filter({ hasText: 'from 127.0.0.1' }).first().waitFor();
      await signInAs('rita');
      await page.goto(urlOf('/'));
      await page.getByRole('link', { name: 'Webhooks', exact: true }).waitFor();
      await page.getByRole('link', { name: 'Audit log' }).waitFor({ state: 'detached' });
    },
  );
});

async function fetchStatus(urlOf: (path: string) => string, apiKey: string): Promise<number> {
  return (await fetch(urlOf('/api/v3/profile'), { headers: { authorization: `Token ${apiKey}` } })).status;
}
