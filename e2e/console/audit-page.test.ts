import { describeConsole } from './support/describe-console.ts';
import { subscribe, webhookApiOf } from './support/webhooks.ts';

describeConsole('the audit log', (story) => {
  story('tells admins who changed what, newest first, and others do not see it', async (visit) => {
    const { world, page, at, as } = visit;
    const id = await subscribe(world, { name: 'Watched' });
    await world.call('ada', 'POST', webhookApiOf(world, id, 'rotate-secret'));
    await as('ada');
    await page.goto(at('/'));
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor();
    const rows = page.getByRole('table', { name: 'Changes' }).getByRole('row');
    await rows
      .filter({ hasText: 'ada@example.com' })
      .filter({ hasText: 'rotated the secret of “Watched”' })
      .waitFor();
    await rows.filter({ hasText: 'created “Watched”' }).waitFor();
    await rows.filter({ hasText: 'signed in' }).filter({ hasText: 'from 127.0.0.1' }).first().waitFor();
    await as('rita');
    await page.goto(at('/'));
    await page.getByRole('link', { name: 'Webhooks', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).waitFor({ state: 'detached' });
  });
});
