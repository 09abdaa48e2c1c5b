import { expect } from '@jest/globals';
import { seedSubscription, seedSubscriptions } from '@runhook/testing';
import { describeConsole } from '../support/describe-console.ts';
import {
  clickSwitch,
  descriptionOf,
  expectFocus,
  headingOf,
  readPageLocation,
} from '../support/page-parts.ts';
import { createPendingResponse, expectOnPage, recordCalls } from '../support/waiting.ts';
import type { World } from '../support/world.ts';

const MANY_WEBHOOKS = 23;

const listOf = (world: World) => `/accounts/${world.accounts.enterprise.id}/settings/webhooks`;
const listOfTeam = (world: World) => `/accounts/${world.accounts.team.id}/settings/webhooks`;

describeConsole(
  'the list of webhooks',
  (story) => {
    story(
      'lists each webhook with its events, jobs, endpoint and last status',
      async ({ page, urlOf, signInAs, world }) => {
        const { enterprise } = world.accounts;
        await signInAs('rita');
        await page.goto(urlOf(`${listOf(world)}?search=listed`));
        const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name });
        const respondedRow = rowOf('Listed answered');
        await respondedRow.waitFor();
        for (const text of ['Run started, completed, errored', 'All jobs', `${world.receiver.url}/ok`])
          await respondedRow.getByText(text, { exact: true }).waitFor();
        await respondedRow.getByText('200 OK').waitFor();
        await respondedRow.getByText(/ago$|^just now$/).waitFor();
        await rowOf('Listed unreachable').getByText('502 could not be reached').waitFor();
        const never = rowOf('Listed never');
        await never.getByText('never triggered').waitFor();
        await never.getByText(enterprise.jobs.map(({ name }) => name).join(', ')).waitFor();

        const when = respondedRow.locator('time');
        await when.focus();
        await page.getByRole('tooltip').getByText(/ UTC$/).waitFor();
        expect(await when.getAttribute('datetime')).toMatch(/^\d{4}-.*Z$/);
      },
    );

    story(
      'shows a read-only user why nothing can be changed, on the page and at every control, by keyboard',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('rita');
        await page.goto(urlOf(`${listOf(world)}?search=listed answered`));
        await page
          .getByRole('note')
          .getByText(/^Changing webhooks on the Enterprise plan requires the permission set/)
          .waitFor();
        const create = page.getByRole('button', { name: 'Create New Webhook' });
        await create.focus();
        expect(await descriptionOf(create)).toMatch(/requires the permission set/);
        await page
          .getByRole('tooltip')
          .getByText(/requires the permission set/)
          .waitFor();
        const changes = recordCalls(page, /\/webhooks\/subscription\//);
        const location = readPageLocation(page);
        await page.keyboard.press('Enter');
        const active = page.getByRole('switch', { name: 'Listed answered is active' });
        await active.focus();
        await page.keyboard.press('Space');
        expect(await changes()).toEqual([]);
        expect(await active.isChecked()).toBe(true);
        expect(readPageLocation(page)).toBe(location);
        expect(await descriptionOf(active)).toMatch(/requires the permission set/);
        const more = page.getByRole('button', { name: 'More about Listed answered' });
        await more.focus();
        // The first press replaces the button by the menu, so a second one is tested as well.
        for (const _ of ['first', 'again']) {
          await page.keyboard.press('Enter');
          // The menu is visible before it has the focus, and Escape would then go to the element that had it before.
          await expectFocus(page.getByRole('menuitem', { name: 'Open' }));
          expect(await page.getByRole('menuitem').count()).toBe(1);
          await page.keyboard.press('Escape');
          await expectFocus(more);
        }
        await page.goto(urlOf(`${listOf(world)}/new`));
        await page.getByText('You have read-only access').waitFor();
        expect(await page.getByRole('textbox', { name: 'Name' }).count()).toBe(0);

        await signInAs('tom');
        await page.goto(urlOf(listOfTeam(world)));
        await page
          .getByText(/requires a Developer license\. Yours is Read-only\./)
          .first()
          .waitFor();
      },
    );

    story('explains why an account has no webhooks', async ({ page, urlOf, signInAs }) => {
      await signInAs('fred');
      await page.goto(urlOf('/'));
      const note = page.getByRole('note');
      await note
        .getByText(/part of the Team and Enterprise plans\. This account is on the Free plan\./)
        .waitFor();
      await page.getByText(/sends it a signed HTTP POST/).waitFor();
      const create = page.getByRole('button', { name: 'Create your first webhook' });
      expect(await descriptionOf(create)).toMatch(/on the Free plan/);
      await signInAs('petra');
      await page.goto(urlOf('/'));
      await note.getByText(/not available on single-tenant private deployments/).waitFor();
    });

    story(
      'explains webhooks in an empty account, and offers to create the first one',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada');
        await page.goto(urlOf(listOfTeam(world)));
        await page.getByText(/sends it a signed HTTP POST/).waitFor();
        await page.getByRole('link', { name: 'Create your first webhook' }).click();
        await headingOf(page, 'Create New Webhook');
      },
    );

    story(
      'writes search and page into the URL, so that back and reload restore them',
      async ({ page, urlOf, signInAs, world }) => {
        const list = listOf(world);
        await signInAs('ada');
        await page.goto(urlOf(list));
        const search = page.getByRole('searchbox');
        await search.fill('receiver-1');
        await expectOnPage(() => expect(readPageLocation(page)).toBe(`${list}?search=receiver-1`));
        await page.getByText('1–10 of 11').waitFor();
        await page.getByRole('button', { name: 'Next page' }).click();
        await page.getByText('11–11 of 11').waitFor();
        expect(readPageLocation(page)).toBe(`${list}?search=receiver-1&page=2`);
        await page.reload();
        await page.getByText('11–11 of 11').waitFor();
        expect(await search.inputValue()).toBe('receiver-1');
        await page.goBack();
        await page.getByText('1–10 of 11').waitFor();
        await page.getByLabel('Webhooks per page').selectOption('25');
        await page.getByText('1–11 of 11').waitFor();
        await expectOnPage(async () => expect(await page.getByRole('row').count()).toBe(12));
        await search.fill('no such thing');
        await page.getByText('No name, endpoint or description contains “no such thing”.').waitFor();
        await page.getByRole('button', { name: 'Clear the search', exact: true }).last().click();
        await page.getByText(`1–25 of ${MANY_WEBHOOKS + 3}`).waitFor();
        expect(readPageLocation(page)).toBe(`${list}?size=25`);
        await page.goto(urlOf(`${list}?page=99`));
        await page.getByText(`21–${MANY_WEBHOOKS + 3} of ${MANY_WEBHOOKS + 3}`).waitFor();
      },
    );

    story(
      'shows a webhook as off immediately, and as on again if the server rejects the change',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada');
        await page.goto(urlOf(`${listOf(world)}?search=Webhook 7`));
        const active = page.getByRole('switch', { name: 'Webhook 7 is active' });
        await active.waitFor();
        const pendingResponse = createPendingResponse();
        await page.route('**/webhooks/subscription/*', async (route) => {
          if (route.request().method() !== 'PUT') return await route.fallback();
          await route.fulfill({
            status: await pendingResponse.status,
            headers: { 'retry-after': '5' },
            json: { status: { code: 503, is_success: false, user_message: 'x' }, data: null },
          });
        });
        await clickSwitch(active);
        await expectOnPage(async () => expect(await active.isChecked()).toBe(false));
        // Refreshes the list while the request is pending: the response is older than the change.
        await world.database.prisma.subscription.updateMany({
          where: { accountId: world.accounts.enterprise.id, name: 'Webhook 7' },
          data: { clientUrl: 'https://moved.example.com/' },
        });
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
        await page.getByText('https://moved.example.com/').waitFor();
        expect(await active.isChecked()).toBe(false);
        pendingResponse.respond(503);
        await page.getByRole('alert').getByText('“Webhook 7” was not switched off').waitFor();
        await page.getByText('Try again in 5 seconds', { exact: false }).waitFor();
        await expectOnPage(async () => expect(await active.isChecked()).toBe(true));

        await page.unroute('**/webhooks/subscription/*');
        await clickSwitch(active);
        await page.getByText('“Webhook 7” was switched off: no events are sent.').waitFor();
        await page.reload();
        await active.waitFor();
        expect(await active.isChecked()).toBe(false);
      },
    );

    story('switches a webhook on again that was switched off by mistake', async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      await signInAs('ada');
      await page.goto(urlOf(`${listOf(world)}?search=Webhook 8`));
      const active = page.getByRole('switch', { name: 'Webhook 8 is active' });
      await clickSwitch(active);
      await page.getByText('“Webhook 8” was switched off: no events are sent.').waitFor();
      await page.getByRole('button', { name: 'Switch it on again' }).click();
      await page.getByText('“Webhook 8” was switched on: events are sent again.').waitFor();
      expect(await active.isChecked()).toBe(true);
      const { active: stored } = await world.database.prisma.subscription.findFirstOrThrow({
        where: { accountId: world.accounts.enterprise.id, name: 'Webhook 8' },
      });
      expect(stored).toBe(true);
    });

    story(
      'finds a webhook by id, limits a long name to three lines, and shows failures in the title',
      async (visit) => {
        const { page, urlOf, signInAs, world } = visit;
        const name = 'So long a name '.repeat(12).slice(0, 170);
        const { id } = await seedSubscription(world.database, {
          accountId: world.accounts.enterprise.id,
          name,
          clientUrl: 'https://long.example.com',
          eventTypes: ['job.run.errored'],
        });
        await world.database.prisma.subscription.update({
          where: { id },
          data: { failingSince: new Date(), consecutiveFailures: 3 },
        });
        await signInAs('ada');
        await page.goto(urlOf(`${listOf(world)}?search=${id}`));
        const link = page.getByRole('link', { name: name.trim() });
        await link.waitFor();
        expect(await page.getByRole('row').count()).toBe(2);
        expect((await link.boundingBox())?.height).toBeLessThan(80);
        await expectOnPage(async () => expect(await page.title()).toBe('1 failing: Webhooks · Runhook'));
        await link.click();
        await expectOnPage(async () => expect(await page.title()).toMatch(/^Failing: So long a name/));
        await world.database.prisma.subscription.delete({ where: { id } });
      },
    );

    story('shows switches in forced colours', async ({ page, urlOf, signInAs, world }) => {
      await signInAs('ada');
      await page.emulateMedia({ forcedColors: 'active' });
      await page.goto(urlOf(`${listOf(world)}?search=Webhook 7`));
      await page.getByRole('switch', { name: 'Webhook 7 is active' }).waitFor();
      const visible = await page.evaluate(
        `(() => {
            const styleOf = (part) => getComputedStyle(document.querySelector('.mantine-Switch-' + part));
            const [track, thumb] = [styleOf('track'), styleOf('thumb')];
            return {
              edge: track.borderTopWidth !== '0px' && track.borderTopColor !== track.backgroundColor,
              knob: thumb.backgroundColor !== track.backgroundColor,
            };
          })()`,
      );
      expect(visible).toEqual({ edge: true, knob: true });
    });

    story(
      'asks with the name before deleting, and then removes the webhook',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada');
        await page.goto(urlOf(`${listOf(world)}?search=Webhook 9`));
        const open = async () => {
          await page.getByRole('button', { name: 'More about Webhook 9' }).click();
          await page.getByRole('menuitem', { name: 'Delete' }).click();
          const dialog = page.getByRole('dialog', { name: 'Delete “Webhook 9”?' });
          // The dialog is loaded first, and an earlier key press would have no effect.
          await dialog.waitFor();
          return dialog;
        };
        const dialog = await open();
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'hidden' });
        await page.route('**/webhooks/subscription/*', (route) => route.abort());
        await open();
        await page.getByRole('button', { name: 'Delete the webhook' }).click();
        await dialog.getByText('The server did not respond.', { exact: false }).waitFor();
        await page.unroute('**/webhooks/subscription/*');
        await page.getByRole('button', { name: 'Delete the webhook' }).click();
        await page.getByText('“Webhook 9” was deleted.').waitFor();
        await page.getByText('No webhook found').waitFor();
        expect(
          await world.database.prisma.subscription.count({
            where: { accountId: world.accounts.enterprise.id, name: 'Webhook 9', deletedAt: null },
          }),
        ).toBe(0);
      },
    );

    story(
      'reports a list that cannot be loaded, and requests it again',
      async ({ page, urlOf, signInAs, world }) => {
        await signInAs('ada');
        // A change that the page receives would make it request the list again.
        await page.route('**/webhooks/changes', (route) => route.fulfill({ status: 429 }));
        await page.route('**/webhooks/subscriptions?*', (route) =>
          route.fulfill({
            status: 500,
            json: {
              status: { code: 500, is_success: false, user_message: 'Something went wrong.' },
              data: null,
            },
          }),
        );
        await page.goto(urlOf(`${listOf(world)}?search=Webhook 5`));
        await page.getByRole('alert').getByText('The webhooks could not be loaded').waitFor();
        await page.unroute('**/webhooks/subscriptions?*');
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.getByRole('link', { name: 'Webhook 5' }).waitFor();
      },
    );
  },
  { prepare },
);

async function prepare(world: World): Promise<void> {
  const { database, accounts, receiver } = world;
  const accountId = accounts.enterprise.id;
  await seedSubscriptions(database.pool, { accountId, count: MANY_WEBHOOKS });
  // The other webhooks must not get deliveries from the run.
  await database.prisma.subscription.updateMany({
    where: { accountId },
    data: { eventTypes: ['job.run.errored'] },
  });
  const seed = (name: string, clientUrl: string, more: { jobIds?: number[]; active?: boolean } = {}) =>
    seedSubscription(database, { accountId, name, clientUrl, ...more });
  await seed('Listed answered', `${receiver.url}/ok`);
  await seed('Listed unreachable', 'http://127.0.0.1:9/nowhere');
  const jobIds = accounts.enterprise.jobs.map(({ id }) => id);
  await seed('Listed never', 'https://never.example.com', { jobIds, active: false });
  await world.run();
  await expectOnPage(async () => {
    const listed = await database.prisma.subscription.findMany({
      where: { accountId, name: { startsWith: 'Listed' } },
    });
    expect(listed.map(({ httpStatusCode }) => httpStatusCode).sort()).toEqual([0, 200, 502]);
  });
}
