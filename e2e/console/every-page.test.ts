import { expect } from '@jest/globals';
import { seedSubscription, seedSubscriptions } from '@runhook/testing';
import { axeFindings } from './support/axe.ts';
import { describeConsole, type Visit } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';
import type { PersonName } from './support/people.ts';
import { ELEMENT_TIMEOUT_MS, onThePage, STORY_TIMEOUT_MS } from './support/waiting.ts';
import { sidewaysOverflow } from './support/watch-page.ts';
import type { World } from './support/world.ts';

interface PageToWalk {
  name: string;
  person: PersonName | null;
  path: (world: World) => string;
  heading: string | RegExp;
  /** Brings the page from one state that is looked at into the next. */
  states?: Record<string, (visit: Visit) => Promise<void>>;
}

/** Found by their names when the world is ready. */
const ids = { webhook: '', failed: '', delivered: '', run: '' };

const list = ({ accounts }: World) => `/accounts/${accounts.enterprise.id}/settings/webhooks`;
const webhook = (world: World) => `${list(world)}/${ids.webhook}`;

const PAGES: PageToWalk[] = [
  {
    name: 'sign in',
    person: null,
    path: () => '/sign-in?next=/profile/api-access',
    heading: 'Sign in',
    states: {
      refused: async ({ page }) => {
        await page.getByLabel('E-mail address').fill('nobody@example.com');
        await page.getByLabel('Password', { exact: true }).fill('wrong');
        await page.getByRole('button', { name: 'Sign in', exact: true }).click();
        await page.getByRole('alert').waitFor();
      },
    },
  },
  {
    name: 'list',
    person: 'ada',
    path: list,
    heading: 'Webhooks',
    states: {
      'own menu': async ({ page }) => {
        await page.getByRole('button', { name: 'You: Ada Lovelace' }).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
      },
      accounts: async ({ page }) => {
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: /^Account:/ }).click();
        await page.getByRole('option', { name: /Borealis/ }).waitFor();
      },
      'asking before deleting': async ({ page }) => {
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'More about Walked' }).click();
        await page.getByRole('menuitem', { name: 'Delete' }).click();
        await page.getByRole('dialog').waitFor();
      },
      'nothing found': async ({ page }) => {
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        await page.getByRole('searchbox').fill('xyz');
        await page.getByText('No webhook found').waitFor();
      },
    },
  },
  { name: 'list, looking only', person: 'rita', path: list, heading: 'Webhooks' },
  {
    name: 'list, empty',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.team.id}/settings/webhooks`,
    heading: 'Webhooks',
  },
  { name: 'list, on a plan without', person: 'fred', path: () => '/', heading: 'Webhooks' },
  {
    name: 'new webhook',
    person: 'ada',
    path: (world) => `${list(world)}/new`,
    heading: 'Create New Webhook',
    states: {
      'with problems': async ({ page }) => {
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Choose at least one event.').waitFor();
      },
      'an event sent, to a target that is known': async ({ page, world }) => {
        await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/tried`);
        await page.getByRole('button', { name: 'Send this event now' }).click();
        await page.getByRole('region', { name: 'Response headers of the test' }).waitFor();
        await page.getByRole('textbox', { name: 'Endpoint' }).fill('https://events.pagerduty.com/v2/enqueue');
        await page.getByRole('button', { name: 'Show the relay for PagerDuty' }).click();
        await page.getByRole('region', { name: 'relay.mjs' }).waitFor();
      },
      'choosing jobs': async ({ page }) => {
        await page.getByLabel('Jobs', { exact: true }).first().click();
        await page.getByRole('option', { name: /^Nightly build/ }).click();
        await page.getByRole('option').first().waitFor();
      },
      'asking before leaving': async ({ page }) => {
        await page.keyboard.press('Escape');
        await page.getByRole('link', { name: 'Cancel' }).click();
        await page.getByRole('dialog').waitFor();
      },
      secret: async ({ page, world }) => {
        await page.getByRole('button', { name: 'Stay here' }).click();
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        await page.getByRole('button', { name: 'Add a header' }).click();
        await page.getByRole('textbox', { name: 'Header 1' }).fill('X-Gate');
        await page.getByLabel('Value 1').fill('open');
        await page.getByRole('textbox', { name: 'Name' }).fill('With a secret');
        await page.getByRole('checkbox', { name: /Run started/ }).check();
        await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/hook`);
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByTestId('secret').waitFor();
      },
      'secret copied': async ({ page }) => {
        await page.getByRole('button', { name: 'Copy the secret' }).click();
        await page.getByText('The secret is copied.').waitFor();
      },
    },
  },
  { name: 'edit', person: 'ada', path: (world) => `${webhook(world)}/edit`, heading: 'Edit webhook' },
  {
    name: 'help',
    person: 'ada',
    path: (world) => `${webhook(world)}/help`,
    heading: 'How to receive it',
    states: {
      'in another language': async ({ page }) => {
        await page.getByRole('tab', { name: 'Python' }).click();
        await page.getByRole('region', { name: 'receiver.py' }).waitFor();
      },
    },
  },
  {
    name: 'signature',
    person: 'rita',
    path: (world) => `${webhook(world)}/signature`,
    heading: 'Check a signature',
    states: {
      wrong: async ({ page }) => {
        await page.getByRole('textbox', { name: 'Body' }).fill('{"a": 1}\n');
        await page.getByRole('textbox', { name: 'Header' }).fill('0'.repeat(64));
        await page.getByLabel('Secret', { exact: true }).fill('whsec_x');
        await page.getByText('The signature is wrong').waitFor();
      },
    },
  },
  {
    name: 'webhook',
    person: 'ada',
    path: webhook,
    heading: 'Walked',
    states: {
      'its endpoint tested': async ({ page }) => {
        await page.getByRole('button', { name: 'Test Endpoint' }).first().click();
        await page.getByRole('region', { name: 'Response headers of the test' }).waitFor();
      },
      'asking before rotating its secret': async ({ page }) => {
        await page.getByRole('button', { name: 'Rotate the secret' }).click();
        await page.getByRole('dialog').waitFor();
      },
    },
  },
  {
    name: 'audit log',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/settings/audit`,
    heading: 'Audit log',
  },
  {
    name: 'runs',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/runs`,
    heading: 'Runs',
    states: {
      'nothing found': async ({ page }) => {
        await page.getByRole('searchbox').fill('xyz');
        await page.getByText('No run matches.').waitFor();
      },
    },
  },
  {
    name: 'run',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/runs/${ids.run}`,
    heading: /^Run \d/,
  },
  {
    name: 'run, looking only',
    person: 'rita',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/runs/${ids.run}`,
    heading: /^Run \d/,
  },
  {
    name: 'events',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/events`,
    heading: 'Events',
    states: {
      'nothing found': async ({ page }) => {
        await page.getByLabel('Run id').fill('987654321');
        await page.getByText('No delivery matches.').waitFor();
      },
    },
  },
  { name: 'webhook, looking only', person: 'rita', path: webhook, heading: 'Walked' },
  {
    name: 'delivery that failed',
    person: 'ada',
    path: (world) => `${webhook(world)}/deliveries/${ids.failed}`,
    heading: /./,
  },
  {
    name: 'delivery that arrived',
    person: 'rita',
    path: (world) => `${webhook(world)}/deliveries/${ids.delivered}`,
    heading: /./,
  },
  {
    name: 'API access',
    person: 'ada',
    path: () => '/profile/api-access',
    heading: 'API Access',
    states: {
      revealed: async ({ page }) => await page.getByRole('button', { name: 'Reveal' }).click(),
      'asking before rotating': async ({ page }) => {
        await page.getByRole('button', { name: 'Rotate the key…' }).click();
        await page.getByRole('dialog').waitFor();
      },
    },
  },
  { name: 'no account', person: 'nina', path: () => '/', heading: 'You are in no account yet' },
  { name: 'not found', person: 'ada', path: () => '/nowhere', heading: 'Not found' },
];

const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
const SCHEMES = ['light', 'dark'] as const;
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 800 };

describeConsole(
  'every page',
  (story) => {
    story(
      'has no violation that axe finds, light and dark, and fits a phone: nothing scrolls sideways',
      async (visit) => {
        const found: string[] = [];
        for (const walked of PAGES) {
          await openPage(visit, walked);
          found.push(...(await problemsOf(visit, walked.name)));
          found.push(...(await problemsAtWidths(visit, walked.name)));
          for (const [state, bring] of Object.entries(walked.states ?? {})) {
            await bring(visit);
            found.push(...(await problemsOf(visit, `${walked.name}, ${state}`)));
          }
        }
        expect(found).toEqual([]);
      },
      { timeoutMs: 3 * STORY_TIMEOUT_MS },
    );

    story(
      'is reached on a phone through the navigation, a drawer there',
      async ({ page, at, as }) => {
        await as('ada');
        await page.goto(at('/'));
        await headingOf(page, 'Webhooks');
        await page.getByRole('button', { name: 'Open the navigation' }).click();
        const drawer = page.getByRole('dialog', { name: 'Navigation' });
        await drawer.getByRole('link', { name: 'API Access' }).click();
        await headingOf(page, 'API Access');
        await drawer.waitFor({ state: 'hidden' });
        await page.getByRole('link', { name: 'Runhook, your webhooks' }).click();
        await headingOf(page, 'Webhooks');
        const cards = page.getByRole('list', { name: 'Webhooks' }).getByRole('listitem');
        await cards.first().waitFor();
        expect(await page.getByRole('table').count()).toBe(0);
        await page.getByRole('link', { name: 'Create New Webhook' }).click();
        await headingOf(page, 'Create New Webhook');
      },
      { context: { viewport: PHONE, hasTouch: true, isMobile: true } },
    );
  },
  { prepare },
);

async function openPage(visit: Visit, { person, path, heading }: PageToWalk): Promise<void> {
  const { page, context, at, as, world } = visit;
  await context.clearCookies();
  if (person !== null) await as(person);
  await page.goto(at(path(world)));
  await headingOf(page, heading);
  await onThePage(async () => expect(await page.locator(UNFINISHED).count()).toBe(0));
}

/** What stands in for something that is loaded. */
const UNFINISHED = '.mantine-Skeleton-root, .mantine-Loader-root';

/** Of the page as it is now: the scheme follows the system's, the layout the width. */
async function problemsOf({ page }: Visit, name: string): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
    // A scheme changes nothing but colours: what else there is to find, light has found.
    const findings = await axeFindings(page, colorScheme === 'dark' ? COLOUR_RULES : undefined);
    found.push(
      ...findings.map(
        ({ rule, node }) =>
          `${name}, ${colorScheme}: ${rule}: ${node.html.slice(0, 200)} ${node.failureSummary}`,
      ),
    );
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(PHONE);
  const wide = await overflowOnceSettled(page);
  await page.setViewportSize(DESKTOP);
  return [...found, ...wide.map((element) => `${name}, on a phone: ${element}`)];
}

/** Nothing scrolls sideways, nothing covers what can be used, and no column of a table is too narrow for its heading. */
async function problemsAtWidths({ page }: Visit, name: string): Promise<string[]> {
  const found: string[] = [];
  for (const width of [360, 768, 1024, 1440, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    const problems = [
      ...(await overflowOnceSettled(page)),
      ...((await page.evaluate(CUT_HEADINGS)) as string[]),
      ...((await page.evaluate(COVERED)) as string[]),
    ];
    found.push(...problems.map((problem) => `${name}, at ${width} px: ${problem}`));
  }
  await page.setViewportSize(DESKTOP);
  return found;
}

const COLUMN_MIN_PX = 45;
const CUT_HEADINGS = `[...document.querySelectorAll('th')]
  .filter(({ clientWidth }) => clientWidth > 0)
  .filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth || clientWidth < ${COLUMN_MIN_PX})
  .map((heading) => 'the column ' + heading.innerText + ' has ' + heading.clientWidth + ' px')`;

/** Judged by what is on top in the middle of each, once it is scrolled to. A label may cover what it is the label of. */
const COVERED = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [role=tab]')]
  .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
  .flatMap((element) => {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
    // Read out, or shown once it has the focus.
    if (width < 2 || height < 2 || right <= 0 || bottom <= 0) return [];
    const above = document.elementFromPoint(left + width / 2, top + height / 2);
    const isOwn = above !== null && (element.contains(above) || above.contains(element) || (element.labels ?? []).length > 0
      && [...element.labels].some((label) => label.contains(above)));
    return isOwn ? [] : [element.outerHTML.slice(0, 100) + ' is under ' + (above?.outerHTML.slice(0, 100) ?? 'nothing')];
  })`;

/** The page has to hear of its width first. What is still too wide after that stays so. */
async function overflowOnceSettled(page: Visit['page']): Promise<string[]> {
  let wide: string[] = [];
  const settled = onThePage(async () => {
    wide = await sidewaysOverflow(page);
    expect(wide).toEqual([]);
  });
  await settled.catch(() => {});
  return wide;
}

async function prepare(world: World): Promise<void> {
  const { database, accounts, receiver } = world;
  const accountId = accounts.enterprise.id;
  await seedSubscriptions(database.pool, { accountId, count: 12 });
  await database.prisma.subscription.updateMany({ data: { active: false } });
  const walked = await seedSubscription(database, {
    accountId,
    name: 'Walked',
    clientUrl: `${receiver.url}/hook`,
    eventTypes: ['job.run.completed'],
  });
  ids.webhook = walked.id;
  const deliveries = () =>
    world.call<{ id: string; status: string }[]>(
      'ada',
      'GET',
      `/v3/accounts/${accountId}/webhooks/subscription/${walked.id}/deliveries`,
    );
  await world.run();
  await receiver.waitFor(1, { timeoutMs: ELEMENT_TIMEOUT_MS });
  receiver.respondWith({ status: 500, body: '{"problem": "the endpoint is out of order"}' });
  ids.run = String(await world.run());
  const ended = await onThePage(async () => {
    const found = await deliveries();
    expect(found.map(({ status }) => status).sort()).toEqual(['delivered', 'failed']);
    return found;
  });
  for (const { id, status } of ended) ids[status as 'failed' | 'delivered'] = id;
  // Long enough to be an incident, on the list and on its own page.
  await database.prisma.subscription.update({
    where: { id: walked.id },
    data: { failingSince: new Date(Date.now() - 7_200_000), consecutiveFailures: 12 },
  });
}
