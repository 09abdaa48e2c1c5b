import { expect } from '@jest/globals';
import { addMembership, createAccount } from '@runhook/database';
import type { Page, Route } from 'playwright-core';
import { describeConsole } from '../support/describe-console.ts';
import { expectFocus, findCoveringElements, headingOf, readPageLocation } from '../support/page-parts.ts';
import { PASSWORD } from '../support/people.ts';
import { startPrefixProxy } from '../support/prefix-proxy.ts';
import { expectOnPage, waitUntilRefreshed } from '../support/waiting.ts';

const MANY_ACCOUNTS = 9;

describeConsole(
  'the sign-in and the frame of every page',
  (story) => {
    story(
      'reports a wrong password, and opens the webhooks with the right one',
      async ({ page, urlOf, world }) => {
        await page.goto(urlOf('/'));
        await headingOf(page, 'Sign in');
        await expectOnPage(async () => expect(await page.title()).toBe('Sign in · Runhook'));
        await page.getByRole('button', { name: 'Sign in', exact: true }).click();
        await page.getByText('Enter your e-mail address.').waitFor();
        await page.getByText('Enter your password.').waitFor();
        await expectFocus(page.getByLabel('E-mail address'));

        await signIn(page, world.persons.ada.email, 'wrong');
        await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor();
        await signIn(page, world.persons.ada.email, PASSWORD);
        await headingOf(page, 'Webhooks');
        await expectOnPage(async () => expect(await page.title()).toBe('Webhooks · Runhook'));
      },
    );

    story('shows how long to wait after too many failed sign-ins', async ({ page, urlOf }) => {
      await page.goto(urlOf('/sign-in'));
      const errorMessage = page
        .getByRole('alert')
        .getByText(/^Too many requests\. Try again in \d+ (minutes?|seconds?)\./);
      // The limit is per e-mail address, so other users are not affected.
      await expectOnPage(async () => {
        await signIn(page, 'mallory@example.com', 'wrong');
        await page.getByRole('button', { name: 'Sign in', exact: true, disabled: false }).waitFor();
        expect(await errorMessage.count()).toBe(1);
      });
    });

    story(
      'returns to the requested page after signing in, and never to another host',
      async ({ page, urlOf, world }) => {
        await page.goto(urlOf('/profile/api-access'));
        await headingOf(page, 'Sign in');
        expect(readPageLocation(page)).toBe('/sign-in?next=%2Fprofile%2Fapi-access');
        await signIn(page, world.persons.ada.email, PASSWORD);
        await headingOf(page, 'API Access');

        await page.context().clearCookies();
        await page.goto(urlOf('/sign-in?next=//example.org/fake'));
        await signIn(page, world.persons.ada.email, PASSWORD);
        await headingOf(page, 'Webhooks');
      },
    );

    story(
      'leads to the sign-in and back after the session has ended, and removes what was shown',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada', { fresh: true });
        const path = `/accounts/${world.accounts.enterprise.id}/settings/webhooks?search=pager`;
        const refreshed = await waitUntilRefreshed(page);
        await page.goto(urlOf(path));
        await page.getByText('No webhook found').waitFor();
        await refreshed();
        await page.context().clearCookies();
        await page.getByRole('searchbox').fill('other');
        await headingOf(page, 'Sign in');
        expect(await page.getByText('No webhook found').count()).toBe(0);
        await signIn(page, world.persons.ada.email, PASSWORD);
        await headingOf(page, 'Webhooks');
        expect(readPageLocation(page)).toBe(path.replace('pager', 'other'));
      },
    );

    story(
      'ends the session on the server when signing out, and shows nothing on the way back',
      async ({ page, urlOf, signInAs, context }) => {
        await signInAs('ada', { fresh: true });
        await page.goto(urlOf('/profile/api-access'));
        await headingOf(page, 'API Access');
        const [cookie] = await context.cookies();
        await page.getByRole('button', { name: 'You: Ada Lovelace' }).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
        await headingOf(page, 'Sign in');
        const profileResponse = await fetch(urlOf('/api/v3/profile'), {
          headers: { cookie: `${cookie?.name}=${cookie?.value}` },
        });
        expect(profileResponse.status).toBe(401);
        await page.goBack();
        await headingOf(page, 'Sign in');
        expect(await page.getByTestId('api-key').count()).toBe(0);
      },
    );

    story('asks before a link from elsewhere signs the user out', async ({ page, urlOf, signInAs }) => {
      await signInAs('ada', { fresh: true });
      await page.goto(urlOf('/sign-out'));
      await page.getByText('Sign out of the console in this browser?').waitFor();
      await page.goto(urlOf('/'));
      await headingOf(page, 'Webhooks');
    });

    story(
      'finds another account among many by keyboard, and stores the choice',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada');
        await page.goto(urlOf('/'));
        await headingOf(page, 'Webhooks');
        const switcher = page.getByRole('button', { name: /^Account:/ });
        await switcher.focus();
        await page.keyboard.press('Enter');
        await expectFocus(page.getByRole('textbox', { name: 'Find an account' }));
        await page.keyboard.type('borea');
        const found = page.getByRole('option', { name: 'Borealis Team' });
        await found.waitFor();
        expect(await findCoveringElements(found)).toEqual([]);
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Enter');
        const webhooksLocation = `/accounts/${world.accounts.team.id}/settings/webhooks`;
        await expectOnPage(() => expect(readPageLocation(page)).toBe(webhooksLocation));
        await page.getByRole('button', { name: 'Account: Borealis Team' }).waitFor();
        await page.goto(urlOf('/'));
        await expectOnPage(() => expect(readPageLocation(page)).toBe(webhooksLocation));
      },
    );

    story(
      'opens pages by keyboard: the skip link leads past the frame, and headings take the focus',
      async ({ page, urlOf, signInAs }) => {
        await signInAs('ada');
        await page.goto(urlOf('/profile/api-access'));
        await headingOf(page, 'API Access');
        // The heading has the focus first. The key must be rendered, because Tab moves to the elements after the frame.
        await page.getByTestId('api-key').waitFor();
        await page.keyboard.press('Tab');
        await expectFocus(page.getByRole('link', { name: 'Skip to the content' }));
        await page.keyboard.press('Enter');
        await expectFocus(page.locator('#content'));
        await page.keyboard.press('Tab');
        await expectFocus(page.getByRole('button', { name: 'Reveal' }));
        await page.getByRole('link', { name: 'Webhooks', exact: true }).focus();
        await page.keyboard.press('Enter');
        await expectFocus(await headingOf(page, 'Webhooks'));
        expect(
          await page
            .getByRole('navigation')
            .getByRole('link', { name: /^API reference/ })
            .getAttribute('href'),
        ).toBe('/docs');
      },
    );

    story('loads the new version once if the files of a page were removed by an upgrade', async (visit) => {
      const { page, urlOf, signInAs } = visit;
      await signInAs('ada');
      await page.goto(urlOf('/'));
      await headingOf(page, 'Webhooks');
      let blockedCount = 0;
      const blockRequest = async (route: Route) => {
        blockedCount += 1;
        await route.fulfill({ status: 404, body: '' });
      };
      await page.route('**/assets/api-access-page*', blockRequest, { times: 1 });
      await page.getByRole('link', { name: 'API Access' }).click();
      await headingOf(page, 'API Access');
      expect(blockedCount).toBe(1);
      // A chunk that fails again is not reloaded repeatedly.
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click();
      await headingOf(page, 'Webhooks');
      await page.route('**/assets/audit-page*', blockRequest);
      await page.getByRole('link', { name: 'Audit log' }).click();
      await page.getByRole('alert').getByText('This page could not be shown').waitFor();
      await page.unroute('**/assets/audit-page*');
      await page.getByRole('button', { name: 'Reload' }).click();
      await headingOf(page, 'Audit log');
    });

    story('shows that it is loading before any script has run', async ({ page, urlOf }) => {
      await page.route('**/assets/*.js', (route) => route.abort());
      await page.goto(urlOf('/'));
      await page.getByRole('status').getByText('Loading Runhook').waitFor();
    });

    story('stores the selected colour scheme', async ({ page, urlOf, signInAs }) => {
      await signInAs('ada');
      await page.goto(urlOf('/profile/api-access'));
      const scheme = () => page.locator('html').getAttribute('data-mantine-color-scheme');
      await headingOf(page, 'API Access');
      await expectOnPage(async () => expect(await scheme()).toBe('light'));
      await page.getByRole('button', { name: 'You: Ada Lovelace' }).click();
      await page.getByRole('menuitemradio', { name: 'Dark' }).click();
      await expectOnPage(async () => expect(await scheme()).toBe('dark'));
      await page.reload();
      await headingOf(page, 'API Access');
      await expectOnPage(async () => expect(await scheme()).toBe('dark'));
    });

    story('shows a user who is in no account that this is so', async ({ page, urlOf, signInAs }) => {
      await signInAs('nina');
      await page.goto(urlOf('/'));
      await headingOf(page, 'You are not a member of an account yet');
      await page.getByRole('link', { name: 'API Access' }).click();
      await headingOf(page, 'API Access');
    });

    story(
      'reports a path that does not exist, and an account of other users',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('rita');
        await page.goto(urlOf('/nowhere'));
        await page.getByText('There is no page at this address.').waitFor();
        await page.goto(urlOf(`/accounts/${world.accounts.team.id}/settings/webhooks`));
        await page.getByText('There is no such account, or you are not a member of it.').waitFor();
      },
    );

    story(
      'reports a server that does not respond, and retries at a click',
      async ({ page, urlOf, signInAs }) => {
        await signInAs('ada');
        await page.route('**/api/v3/session', (route) => route.abort());
        await page.goto(urlOf('/'));
        await page.getByText('Runhook cannot be reached').waitFor();
        await page.unroute('**/api/v3/session');
        await page.getByRole('button', { name: 'Try again' }).click();
        await headingOf(page, 'Webhooks');
      },
    );

    story(
      'works below a path that a proxy strips, and requests nothing outside of it',
      async ({ page, world, ownOrigins }) => {
        const proxy = await startPrefixProxy(world.url, '/tools/runhook');
        ownOrigins.push(proxy.origin);
        try {
          page.on('request', (request) => {
            if (!request.url().startsWith(`${proxy.url}/`)) proxy.requestsOutsidePrefix.push(request.url());
          });
          await page.goto(`${proxy.url}/profile/api-access`);
          await signIn(page, world.persons.ada.email, PASSWORD);
          await headingOf(page, 'API Access');
          await page.getByText(`curl -s '${proxy.url}/api/v3/accounts/`).waitFor();
          await page.getByRole('link', { name: 'Webhooks', exact: true }).click();
          await headingOf(page, 'Webhooks');
          await page.reload();
          await headingOf(page, 'Webhooks');
          expect(page.url().startsWith(`${proxy.url}/accounts/`)).toBe(true);
          expect(
            await page
              .getByRole('navigation')
              .getByRole('link', { name: /^API reference/ })
              .getAttribute('href'),
          ).toBe('/tools/runhook/docs');
          expect(proxy.requestsOutsidePrefix).toEqual([]);
        } finally {
          await page.close();
          await proxy.close();
        }
      },
    );
  },
  {
    prepare: async ({ database: { prisma }, persons }) => {
      for (let number = 1; number <= MANY_ACCOUNTS; number += 1) {
        const { id } = await createAccount(prisma, {
          name: `Subsidiary ${number}`,
          plan: 'enterprise',
          deployment: 'multi_tenant',
        });
        await addMembership(prisma, {
          accountId: id,
          userId: persons.ada.id,
          license: 'read_only',
          permissionSets: [],
        });
      }
    },
  },
);

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
