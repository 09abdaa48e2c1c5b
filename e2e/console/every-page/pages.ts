import type { Visit } from '../support/describe-console.ts';
import { openOptions } from '../support/page-parts.ts';
import type { PersonName } from '../support/people.ts';
import type { World } from '../support/world.ts';
import { ids } from './world.ts';

export interface PageToCheck {
  name: string;
  person: PersonName | null;
  path: (world: World) => string;
  heading: string | RegExp;
  /** Actions that bring the page from one checked state into the next. */
  states?: Record<string, (visit: Visit) => Promise<void>>;
}

const list = ({ accounts }: World) => `/accounts/${accounts.enterprise.id}/settings/webhooks`;
const webhook = (world: World) => `${list(world)}/${ids.webhook}`;

const FORMATS_WITH_PREVIEW = [
  ['slack', 'Slack'],
  ['teams', 'Microsoft Teams'],
  ['discord', 'Discord'],
  ['pagerduty', 'PagerDuty'],
] as const;

export const PAGES: PageToCheck[] = [
  {
    name: 'sign in',
    person: null,
    path: () => '/sign-in?next=/profile/api-access',
    heading: 'Sign in',
    states: {
      rejected: async ({ page }) => {
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
        await page.getByText('Nothing is sent for “Run started”.').waitFor();
      },
      'the message of a target': async ({ page }) => {
        await page.getByRole('radio', { name: 'Run errored' }).check();
        for (const [format, label] of FORMATS_WITH_PREVIEW) {
          await page.getByRole('combobox', { name: 'Format' }).selectOption(format);
          await page.getByRole('region', { name: `Message in ${label}` }).waitFor();
        }
        await page.getByRole('combobox', { name: 'Format' }).selectOption('runhook');
        await page.getByText('Set the format to PagerDuty').waitFor();
      },
      'more options': async ({ page }) => {
        await openOptions(page);
        await page.getByRole('button', { name: 'Add a label' }).click();
        await page.getByRole('button', { name: 'Remove label 1' }).click();
      },
      'choosing jobs': async ({ page }) => {
        await page.getByLabel('Jobs', { exact: true }).first().click();
        await page.getByRole('option', { name: /^Nightly build/ }).click();
        await page.getByRole('listbox').getByRole('option').first().waitFor();
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
        await page.getByText('The secret was copied.').waitFor();
      },
    },
  },
  { name: 'edit', person: 'ada', path: (world) => `${webhook(world)}/edit`, heading: 'Edit webhook' },
  {
    name: 'help',
    person: 'ada',
    path: (world) => `${webhook(world)}/help`,
    heading: 'How to receive deliveries',
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
    name: 'service tokens',
    person: 'ada',
    path: ({ accounts }) => `/accounts/${accounts.enterprise.id}/settings/tokens`,
    heading: 'Service tokens',
  },
  {
    name: 'security',
    person: 'ada',
    path: () => '/profile/security',
    heading: 'Security',
    states: {
      'with problems': async ({ page }) => {
        await page.getByRole('button', { name: 'Change the password' }).click();
        await page.getByText('Enter a password.').first().waitFor();
      },
      'asking before signing out everywhere': async ({ page }) => {
        await page.getByRole('button', { name: 'Sign out everywhere…' }).click();
        await page.getByRole('dialog').waitFor();
      },
    },
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
    states: {
      'log of a step': async ({ page }) => {
        await page.getByRole('button', { name: /^1\. Invoke dbt/ }).click();
        await page.getByRole('region', { name: 'The log of step 1' }).waitFor();
      },
    },
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
  { name: 'no account', person: 'nina', path: () => '/', heading: 'You are not a member of an account yet' },
  { name: 'not found', person: 'ada', path: () => '/nowhere', heading: 'Not found' },
];
