import { expect, test } from '@jest/globals';
import { recognizeTarget } from '../src/targets/recognized-targets.ts';

test.each([
  ['slack', 'https://hooks.slack.com/services/T0/B0/x'],
  ['slack', ' https://hooks.slack.com/triggers/T0/1/x '],
  ['slack', 'https://hooks.slack.com/workflows/T0/A0/1/x'],
  ['slack', 'https://hooks.slack-gov.com/services/T0/B0/x'],
  ['teams', 'https://acme.webhook.office.com/webhookb2/x@y/IncomingWebhook/z'],
  ['teams', 'https://outlook.office.com/webhook/x'],
  ['teams', 'https://prod-12.westeurope.logic.azure.com:443/workflows/x/triggers/manual/paths/invoke?sig=y'],
  ['teams', 'https://ab.12.environment.api.powerplatform.com/powerautomate/automations/direct/workflows/x'],
  ['pagerduty', 'https://events.pagerduty.com/v2/enqueue'],
  ['pagerduty', 'https://EVENTS.EU.pagerduty.com/v2/enqueue'],
  ['discord', 'https://discord.com/api/webhooks/1/x'],
  ['discord', 'https://ptb.discordapp.com/api/v10/webhooks/1/x'],
])('the target %s is recognized by %s', (key, url) => {
  expect(recognizeTarget(url)).toMatchObject({ key });
});

test.each([
  '',
  'https://',
  'hooks.slack.com/services',
  'https://hooks.slack.com.example.com/services/T0/B0/x',
  'https://example.com/?to=https://hooks.slack.com/services/T0',
  'https://slack.com/api/chat.postMessage',
  'https://discord.com/channels/1',
  'https://notwebhook.office.com.example/x',
  'https://relay.example.com/pagerduty',
])('%s is not recognized as a known target', (url) => {
  expect(recognizeTarget(url)).toBeNull();
});
