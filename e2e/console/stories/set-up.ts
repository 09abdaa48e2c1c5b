import { createHmac } from 'node:crypto';
import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import { expectFocus, headingOf } from '../support/page-parts.ts';
import { expectOnPage } from '../support/waiting.ts';
import { subscribe, webhookPathOf } from '../support/webhooks.ts';

const sign = (body: string | Buffer, secret: string) =>
  createHmac('sha256', secret).update(body).digest('hex');

describeConsole('setting up and testing a webhook', (story) => {
  story(
    'shows an event, sends it to the endpoint, and shows the response before anything is saved',
    async (visit) => {
      const { page, world } = visit;
      await open(visit, 'new');
      const sample = page.getByRole('region', { name: 'What is sent' });
      await page.getByRole('checkbox', { name: /Run errored/ }).check();
      await sample.getByText('At once when a run fails', { exact: false }).waitFor();
      const payload = sample.getByRole('region', { name: 'Sample payload' });
      await expectOnPage(async () => expect(await payload.textContent()).toContain('"runStatus": "Errored"'));

      await sample.getByRole('button', { name: 'Send this event now' }).click();
      await page.getByText('Enter the address that deliveries are sent to.').waitFor();
      const endpoint = page.getByRole('textbox', { name: 'Endpoint' });
      await expectFocus(endpoint);
      await endpoint.fill('http://10.0.0.1/hook');
      await sample.getByRole('button', { name: 'Send this event now' }).click();
      await page.getByText(/^The endpoint .*\.$/).waitFor();
      await endpoint.fill(`${world.receiver.url}/tried`);
      world.receiver.respondWith({ status: 401, body: '{"why":"unknown secret"}' });
      await sample.getByRole('button', { name: 'Send this event now' }).click();
      await sample.getByText('Your endpoint returned 401 Unauthorized').waitFor();
      await sample.getByText('verifies with the secret of this webhook', { exact: false }).waitFor();
      const responseBody = sample.getByRole('region', { name: 'Response body of the test' });
      await expectOnPage(async () => expect(await responseBody.textContent()).toContain('unknown secret'));
      await sample.getByText('Waiting for response').waitFor();
      const [request] = await world.receiver.waitFor((one) => one.path === '/tried');
      const secret = (await page.getByTestId('sample-secret').textContent()) ?? '';
      expect(request?.headers.authorization).toBe(sign(request?.body ?? '', secret));

      world.receiver.respondWith(200);
      await sample.getByRole('button', { name: 'Send this event now' }).click();
      await sample.getByText('Your endpoint returned 200 OK').waitFor();
      await page.getByRole('textbox', { name: 'Name' }).fill('With proof');
      await page.getByRole('button', { name: 'Save' }).click();
      await headingOf(page, '“With proof” was created');
      await page.getByRole('button', { name: 'Copy the secret' }).click();
      await page.getByText('The secret was copied.').waitFor();
      await page.getByRole('button', { name: 'Go to the webhook' }).click();

      // A saved webhook is tested with its own secret, with any event.
      await headingOf(page, 'With proof');
      await page.getByRole('button', { name: 'Test Endpoint' }).first().click();
      const test = page.getByRole('region', { name: 'Test of the endpoint' });
      await test.getByText('Your endpoint returned 200 OK').waitFor();
      await test.getByRole('radio', { name: 'Run started' }).check();
      await test.getByRole('button', { name: 'Send this event now' }).click();
      await expectOnPage(async () => {
        const sent = await test.getByRole('region', { name: 'Request body of the test' }).textContent();
        expect(sent).toContain('"eventType": "job.run.started"');
      });
      expect(await page.getByTestId('sample-secret').count()).toBe(0);
    },
  );

  story('tests an edited endpoint before it is saved, without sending stored values', async (visit) => {
    const { page, world } = visit;
    const headers = { 'X-Gateway-Key': 'a stored value' };
    const id = await subscribe(world, { name: 'To be moved', headers });
    await open(visit, `${id}/edit`);
    const sample = page.getByRole('region', { name: 'What is sent' });
    await sample.getByText('Signed with the secret of the webhook.', { exact: false }).waitFor();
    await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/moved`);
    await sample.getByText('Sent without X-Gateway-Key', { exact: false }).waitFor();
    await sample.getByRole('button', { name: 'Send this event now' }).click();
    await sample.getByText('Your endpoint returned 200 OK').waitFor();
    const [request] = await world.receiver.waitFor((one) => one.path === '/moved');
    expect(request?.headers).not.toHaveProperty('x-gateway-key');
    expect(JSON.parse(String(request?.body)).webhookName).toBe('To be moved');
  });

  story(
    'explains a rejected signature, and fills the example receivers in with the values of the webhook',
    async (visit) => {
      const { page, world, urlOf } = visit;
      const id = await subscribe(world, { name: 'Explained', signature_header: 'X-Signature' });
      await visit.signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await headingOf(page, 'Explained');
      await page.getByRole('link', { name: 'Check a signature' }).first().click();
      await headingOf(page, 'Check a signature');
      const verdict = page.getByRole('status', { name: 'Verdict' });
      const body = '{"eventId":"wev_1"}';
      await page.getByRole('textbox', { name: 'Body' }).fill(`${body}\n`);
      await page.getByRole('textbox', { name: 'Header' }).fill(`x-signature: ${sign(body, 'whsec_x')}`);
      await page.getByLabel('Secret', { exact: true }).fill('whsec_x');
      await verdict.getByText('A trailing newline was added to the body.', { exact: false }).waitFor();
      await verdict.getByText('Byte 19 differs', { exact: false }).waitFor();
      await page.getByRole('textbox', { name: 'Body' }).fill(body);
      await verdict.getByText('The signature is valid').waitFor();

      await page.goto(urlOf(`${webhookPathOf(world, id)}/help`));
      await headingOf(page, 'How to receive deliveries');
      await codeOf(page, 'receiver.js', "const SIGNATURE_HEADER = 'x-signature';");
      await page.getByRole('tab', { name: 'Python' }).click();
      await codeOf(page, 'receiver.py', 'PATH = "/hook"');
      expect(new URL(page.url()).search).toBe('?language=python');
      await page.getByRole('link', { name: 'check a signature' }).click();
      await headingOf(page, 'Check a signature');
    },
  );
});

async function codeOf(page: Page, file: string, text: string): Promise<void> {
  const code = page.getByRole('region', { name: file });
  await expectOnPage(async () => expect(await code.textContent()).toContain(text));
}

async function open({ page, urlOf, signInAs, world }: Visit, rest: string): Promise<void> {
  await signInAs('ada');
  await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/settings/webhooks/${rest}`));
  await page.getByRole('heading', { level: 1 }).waitFor();
}
